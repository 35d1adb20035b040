import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bodyOf, type Question, readTools } from "../../console/src/playground/ask.ts";
import { linesOf } from "../../console/src/playground/lines.ts";
import { type ConsoleService, startConsole } from "./start-console.ts";

// What the playground offers to copy is run as it stands, against the service.

const run = promisify(execFile);
/** In the repository, so that programs find its packages; it is not kept. */
const parent = join(import.meta.dirname, "../../coverage");
const said = "Hello from the deployment.";
const tools = `[{"name": "look", "description": "It's a \\"look\\"", "parameters": {"type": "object", "properties": {"deep": {"type": "boolean", "default": true}}}}]`;
/** Stands for both SDKs of Python, which are not here: it prints what it was made with and what was asked. */
const recorder = `import json
class OpenAI:
    def __init__(self, **options): self.options = options
    def __getattr__(self, name): return self
    def create(self, **body):
        print(json.dumps([self.options, body]))
        return []
Anthropic = OpenAI
`;

let service: ConsoleService;
let folder = "";
let key = "";

beforeAll(async () => {
  mkdirSync(parent, { recursive: true });
  folder = mkdtempSync(join(parent, "lines-"));
  for (const name of ["openai.py", "anthropic.py"]) writeFileSync(join(folder, name), recorder);
  service = await startConsole(null);
  const account = await service.command("account", "create", "lines", "--credit", "10");
  ({ key = "" } = await service.command("key", "create", account["id"] ?? "", "--name", "lines"));
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

const questions = (["chat-completions", "responses", "messages"] as const).flatMap((format) =>
  [true, false].map((streamed): Question => {
    const text = "It's 5 o'clock, \"sharp\"\nin $HOME `there`";
    return { format, streamed, text, system: "Be short.", outputTokensMax: "64", tools };
  }),
);

test.each(questions)(
  "the lines for $format, streamed: $streamed, ask just that",
  async (question) => {
    const read = readTools(question.tools);
    if (typeof read === "string") throw new Error(`the tools: ${read}`);
    const body = bodyOf(question, read);
    const lines = linesOf({ format: question.format, body, url: service.url, key });
    for (const { text, title } of lines) {
      if (title.endsWith("Python")) {
        const { stdout } = await run("python3", ["-c", text], { cwd: folder });
        const [first = ""] = stdout.split("\n");
        const [options, asked] = JSON.parse(first) as [Record<string, string>, unknown];
        expect(options["api_key"]).toBe(key);
        expect(options["base_url"]).toContain(service.url);
        expect(asked).toEqual(body);
        continue;
      }
      const before = service.deployment.requests.length;
      const file = join(folder, "program.mts");
      writeFileSync(file, text);
      const [program, ...words] =
        title === "curl" ? ["bash", "-c", text] : [process.execPath, file];
      const { stdout } = await run(program ?? "", words, { cwd: folder });
      const spoken = question.streamed ? /Hello/u : new RegExp(said, "u");
      expect(stdout, title).toMatch(spoken);
      expect(service.deployment.requests.length, title).toBe(before + 1);
      expect(service.deployment.requests.at(-1)?.body, title).toContain(
        JSON.stringify(question.text),
      );
    }
  },
);
