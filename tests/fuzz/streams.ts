import { readdirSync, readFileSync } from "node:fs";
import type { Step } from "../doubles/scripted-deployment.ts";
import { mutateBytes } from "./mutate-bytes.ts";
import { problemOfAnswer } from "./problem-of-answer.ts";
import { count, pick, repeat, type Stage, type Tally } from "./stage.ts";

const bodies = [
  ["/v1/chat/completions", { messages: [{ role: "user", content: "Hi" }] }],
  ["/v1/responses", { input: "Hi" }],
  ["/v1/messages", { max_tokens: 500, messages: [{ role: "user", content: "Hi" }] }],
] as const;

const tool = { name: "get_weather", description: "", parameters: { type: "object" } };
const toolsOf = {
  "/v1/chat/completions": [{ type: "function", function: tool }],
  "/v1/responses": [{ type: "function", ...tool }],
  "/v1/messages": [{ name: tool.name, input_schema: tool.parameters }],
} as const;

/** Lets the deployment answer with streams of real engines whose bytes, frames, order and cuts were changed. */
export async function sendMutatedStreams(runs: number, stage: Stage): Promise<Tally> {
  const { random } = stage;
  const recorded = readRecordedStreams();
  const tally: Tally = new Map();
  stage.deployment.answerBy(() => pieces(mutatedStream(pick(recorded, random), random), random));
  await repeat(runs, 16, async (index) => {
    const [path, body] = pick(bodies, random);
    const stream = random() < 0.7;
    const answer = await stage.pool.request({
      method: "POST",
      path,
      headers: { "content-type": "application/json", authorization: `Bearer ${stage.key}` },
      body: JSON.stringify({ ...body, stream, tools: toolsOf[path] }),
    });
    const text = await answer.body.text();
    const status = answer.statusCode;
    count(tally, `${String(status)}${isFailed(text) ? " failed" : ""}`);
    const problem =
      status === 200 || status === 502 || status === 503 || status === 529 || status === 400
        ? problemOfAnswer(path, status, { headers: answer.headers, text })
        : `status ${String(status)}: ${text.slice(0, 200)}`;
    // What the deployment says wrongly is its failure; a failure of the service itself is a bug.
    const internal = text.includes('"internal_error"') || text.includes('"internal"');
    if (problem !== null || internal)
      stage.report(
        `stream ${String(index)} as ${path}: ${problem ?? "an internal error"}: ${text.slice(-500)}`,
      );
  });
  return tally;
}

function isFailed(text: string): boolean {
  return /^event: error$|^data: \{"error"/mu.test(text);
}

function readRecordedStreams(): readonly Uint8Array[] {
  const folder = new URL("../cases/upstream/", import.meta.url);
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".sse"))
    .map((name) => new Uint8Array(readFileSync(new URL(name, folder))));
}

/** Changes of frames: left out, doubled, swapped, taken from before; and of bytes. */
function mutatedStream(original: Uint8Array, random: () => number): Uint8Array {
  const frames = Buffer.from(original)
    .toString("latin1")
    .split(/(?<=\n\n)/u);
  for (let changes = Math.floor(random() * 3); changes > 0; changes -= 1) {
    const at = Math.floor(random() * frames.length);
    const other = Math.floor(random() * frames.length);
    const frame = frames[at] ?? "";
    if (random() < 0.3) frames.splice(at, 1);
    else if (random() < 0.5) frames.splice(other, 0, frame);
    else frames.splice(at, 1, frames[other] ?? "", frame);
  }
  const whole = Buffer.from(frames.join(""), "latin1");
  return random() < 0.75 ? mutateBytes(whole, random) : whole;
}

function pieces(bytes: Uint8Array, random: () => number): readonly Step[] {
  const steps: Step[] = [];
  const most = 1 + random() ** 4 * bytes.length;
  for (let at = 0; at < bytes.length;) {
    const end = at + 1 + Math.floor(random() * most);
    steps.push({ type: "write", bytes: bytes.subarray(at, end) });
    at = end;
  }
  return random() < 0.1 ? [...steps, { type: "reset" }] : steps;
}
