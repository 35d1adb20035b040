import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isRecord } from "../cases/files.ts";
import type { CapturedRequest, Recording } from "../recordings/recording.ts";
import { openStableForm } from "../recordings/stable-form.ts";
import { startService } from "../service/start-service.ts";
import { type Agent, contextTokens } from "./agents.ts";
import { startRecordingProxy } from "./record-proxy.ts";
import { openWorkplace, runAgent } from "./run-agent.ts";
import { freshWord, noteText, TaskScript } from "./script.ts";

const limitMs = 120_000;

/** Lets an agent do its small task and returns what it sent meanwhile. Throws when the task was not done. */
export async function recordAgent(agent: Agent, programs: string): Promise<Recording> {
  await using service = await startService({ deployment: { contextTokens } });
  await using proxy = await startRecordingProxy(service.url);
  await using workplace = await openWorkplace();
  const path = join(workplace.work, "note.txt");
  const word = freshWord();
  await writeFile(path, noteText(word, false));
  const script = new TaskScript({ asksForTitle: agent.asksForTitle, path });
  service.deployment.answerBy((request) => script.answer(request));
  const access = { url: proxy.url, key: service.key };
  const { prompt } = script;
  const result = await runAgent({ agent, programs, access, prompt, workplace, limitMs });
  if (result.exitCode !== 0 || script.problems.length > 0) {
    const output = `${result.stdout}\n${result.stderr}`.slice(-2_000);
    throw new Error(`${agent.name} failed: ${script.problems.join("; ")}\n${output}`);
  }
  const form = openStableForm([
    [workplace.work, "<work>"],
    [workplace.home, "<home>"],
    [proxy.url, "<url>"],
    [new URL(proxy.url).host, "<host>"],
    [service.key, "<key>"],
    [agent.version, "<version>"],
    [word, "<word>"],
  ]);
  const calls = named(proxy.captured).map(([what, request]) => form.call(what, request));
  return { client: agent.name, version: agent.version, calls };
}

/** Turns are numbered; what runs beside them comes first, as its place among them is left to chance. */
function named(
  requests: readonly CapturedRequest[],
): readonly (readonly [string, CapturedRequest])[] {
  const turns = requests.filter(offersTools);
  const others = requests.filter((request) => !offersTools(request));
  const kinds = new Map<string, number>();
  const named = others.map((request) => {
    const kind = request.method === "POST" ? "title" : `${request.method} ${request.path}`;
    const count = (kinds.get(kind) ?? 0) + 1;
    kinds.set(kind, count);
    return [count === 1 ? kind : `${kind} ${String(count)}`, request] as const;
  });
  return [
    ...named.toSorted(([a], [b]) => a.localeCompare(b)),
    ...turns.map((request, index) => [`turn ${String(index + 1)}`, request] as const),
  ];
}

/** A tool may also come among the items of an input. */
function offersTools({ body }: CapturedRequest): boolean {
  const json: unknown = body === "" ? null : JSON.parse(body);
  if (!isRecord(json)) return false;
  const { input, tools } = json;
  return (
    (Array.isArray(tools) && tools.length > 0) ||
    (Array.isArray(input) &&
      input.some((item) => isRecord(item) && item["type"] === "additional_tools"))
  );
}
