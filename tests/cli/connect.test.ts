import { describe, expect, it } from "vitest";
import { agentsNeedMore } from "../../src/cli/client-recipes.ts";
import { openFakeEngine } from "./fake-engine.ts";
import { openRecordingShell } from "./recording-shell.ts";

const run = openRecordingShell("/");

interface Connection {
  readonly client: string;
  readonly url: string;
  readonly deployment: string | null;
  readonly recipes: readonly { title: string; language: string; text: string }[];
}

async function connect(
  environment: Readonly<Record<string, string>>,
  ...words: readonly string[]
): Promise<Connection> {
  const shell = openRecordingShell("/", environment);
  return JSON.parse((await shell("connect", ...words, "--json")).stdout) as Connection;
}

describe("connect", () => {
  it("lists the clients that lines are known for", async () => {
    const { exitCode, stdout } = await run("connect");
    expect(exitCode).toBe(0);
    const names = stdout.split("\n").map((line) => line.split(" ")[0]);
    expect(names).toEqual(
      expect.arrayContaining(["curl", "python", "typescript", "claude", "codex", "opencode"]),
    );
  });

  it.each([
    [
      "curl",
      [
        "Chat Completions",
        "Chat Completions, streamed",
        "Responses",
        "Responses, streamed",
        "Messages",
        "Messages, streamed",
      ],
    ],
    ["python", ["openai for Python", "anthropic for Python"]],
    ["typescript", ["OpenAI SDK", "Anthropic SDK"]],
    ["langchain", ["LangChain's ChatOpenAI", "LangChain's ChatAnthropic"]],
    ["openai-agents", ["OpenAI Agents SDK"]],
    ["claude", ["Claude Code"]],
    ["codex", ["Codex"]],
    ["opencode", ["opencode"]],
  ])("prints the lines for %s with address and key", async (client, titles) => {
    const settings = {
      TRIBUTARY_HOST: "0.0.0.0",
      TRIBUTARY_PORT: "9000",
      TRIBUTARY_API_KEY: "trib_k",
    };
    const { recipes, url } = await connect(settings, client);
    expect(url).toBe("http://127.0.0.1:9000");
    expect(recipes.map(({ title }) => title)).toEqual(titles);
    for (const { text } of recipes) {
      expect(text).toContain(url);
      expect(text).toContain("trib_k");
    }
  });

  it("takes another address and key, and says what is to be replaced where it has none", async () => {
    const given = await run(
      "connect",
      "curl",
      "--url",
      "https://llm.example/v1/",
      "--key",
      "trib_x",
    );
    expect(given.stdout).toContain("curl -sN https://llm.example/v1/responses ");
    expect(given.stdout).not.toContain("YOUR_KEY");
    const { stdout } = await run("connect", "typescript");
    expect(stdout).toMatch(
      /^\/\/ YOUR_KEY is to be replaced by a key: tributary key create ACCOUNT$/m,
    );
    expect(stdout).not.toMatch(/^#/m);
  });

  it("tells which deployment makes an agent work, unless this one does", async () => {
    const embedded = await connect({}, "claude");
    expect(embedded.deployment).toContain(agentsNeedMore);
    await using large = await openFakeEngine({ contextTokens: 262_144 });
    const fits = await connect({ TRIBUTARY_DEPLOYMENT_URL: large.url }, "codex");
    expect(fits.deployment).toBeNull();
    expect(fits.recipes[0]?.text).toContain("model_context_window=262144");
    await using small = await openFakeEngine({ contextTokens: 8_192 });
    const tooSmall = await connect({ TRIBUTARY_DEPLOYMENT_URL: small.url }, "codex");
    expect(tooSmall.deployment).toContain("Context here: 8192, it takes tools.");
    expect((await run("connect", "claude")).stdout).toMatch(
      /^# Claude Code, Codex and opencode need /m,
    );
  });

  it.each([
    [["claud"], 'There are no lines for "claud", perhaps claude; known are: curl, '],
    [["curl", "--url", "localhost"], "is no address"],
  ])("is misused: %j", async (words, reason) => {
    const { exitCode, stderr } = await run("connect", ...words);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(reason);
  });
});
