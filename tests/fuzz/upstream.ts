import { readdirSync, readFileSync } from "node:fs";
import { openEventOrderCheck } from "../../src/conversation/check-event-order.ts";
import { openGenerationCollector } from "../../src/conversation/collect-generation.ts";
import { wireFormats } from "../../src/formats/formats.ts";
import { openMeter } from "../../src/generation/meter.ts";
import { openContext, testReasoning } from "../cases/context.ts";
import { plainRequest } from "../cases/generations.ts";
import { driveGeneration, type DrivenGeneration } from "../deployment/driven-generation.ts";
import { openRandom } from "../doubles/random.ts";
import { mutate, type Mutation } from "../properties/mutate-json.ts";
import { mutateBytes } from "./mutate-bytes.ts";

/** What came of a number of mutated streams. */
export interface UpstreamFuzzReport {
  /** How often each ending came: `finished`, or the code of a failure. */
  readonly endings: ReadonlyMap<string, number>;
  /** The most computing that the reading and encoding of one stream took, in milliseconds. */
  readonly slowestMs: number;
}

const bounds = { inputTokensMax: 1_000, outputTokensMax: 500 };

/**
 * Streams of the recordings with changed fields, frames, order, bytes and cuts, read as a deployment's answer, metered
 * and written in all three formats, without a socket. Throws with the stream when one is no answer to any of them.
 */
export async function fuzzUpstream(seed: number, runs: number): Promise<UpstreamFuzzReport> {
  const recorded = readRecordedStreams();
  const endings = new Map<string, number>();
  let slowestMs = 0;
  for (let run = 0; run < runs; run += 1) {
    const random = openRandom(seed + run * 7_919);
    const stream = mutatedStream(pick(recorded, random), random);
    const before = process.cpuUsage();
    try {
      const ending = await readThrough(stream, random);
      endings.set(ending, (endings.get(ending) ?? 0) + 1);
    } catch (error) {
      const text = Buffer.from(stream).toString("utf8");
      throw new Error(`seed ${String(seed)}, run ${String(run)}: ${text}`, { cause: error });
    }
    const { system, user } = process.cpuUsage(before);
    slowestMs = Math.max(slowestMs, (system + user) / 1_000);
  }
  return { endings, slowestMs };
}

async function readThrough(stream: Uint8Array, random: () => number): Promise<string> {
  const one = driveGeneration(bounds);
  one.ask();
  one.answer(200, { "content-type": random() < 0.05 ? "application/json" : "text/event-stream" });
  const most = 1 + random() ** 4 * stream.length;
  for (let at = 0; at < stream.length;) {
    const end = at + 1 + Math.floor(random() * most);
    await one.send(Uint8Array.from(stream.subarray(at, end)));
    at = end;
  }
  if (random() < 0.1) one.break();
  else one.endBody();
  await one.settle();
  one.clock.advance(1_000_000);
  await one.settle();
  judge(one);
  const { ending } = one;
  if (ending?.type === "failed") return ending.failure.code;
  return ending?.type ?? "none";
}

function judge({ batches, clock, ending, fates, usages }: DrivenGeneration): void {
  if (ending === null) throw new Error("it did not end");
  if (ending.type === "cancelled") throw new Error("it was cancelled, and nobody asked for that");
  if (ending.type === "failed" && ending.failure.code === "internal") throw ending.failure;
  if (fates.length === 0) throw new Error("its connection was neither kept nor dropped");
  if (clock.waiting > 0) throw new Error("a timer is left");
  const order = openEventOrderCheck();
  const meter = openMeter({ inputTokensEstimate: 10, ...bounds });
  for (const [index, batch] of batches.entries()) {
    order.add(batch);
    meter.add(batch, usages[index] ?? null);
  }
  if (ending.type === "finished") order.end();
  const usage = meter.usage(ending.type === "finished" ? ending.usage : null);
  for (const figure of Object.values(usage))
    if (!Number.isSafeInteger(figure) || figure < 0 || figure > 1_000)
      throw new Error(`usage that cannot be: ${JSON.stringify(usage)}`);
  for (const format of ["chat-completions", "responses", "messages"] as const) {
    const { echo } = wireFormats[format].parseRequest(plainRequest(format), testReasoning);
    const encoder = wireFormats[format].openEncoder(openContext(echo));
    const finish = ending.type === "finished" ? { ...ending.finish, usage } : null;
    const frames = [encoder.open(), ...batches.map((batch) => encoder.encode(batch))];
    if (ending.type === "failed") frames.push(encoder.fail(ending.failure));
    else if (finish !== null) frames.push(encoder.finish(finish));
    ensureFrames(frames.join(""));
    if (finish === null) continue;
    const collector = openGenerationCollector();
    collector.add(batches.flat());
    JSON.stringify(wireFormats[format].buildResponse(collector.finish(finish), openContext(echo)));
  }
}

/** Whatever the deployment said, it is inside of JSON. */
function ensureFrames(text: string): void {
  for (const line of text.split("\n")) {
    if (line.startsWith("data: ") && line !== "data: [DONE]") JSON.parse(line.slice(6));
    else if (line !== "" && line !== "data: [DONE]" && !/^event: [a-z_.]+$/u.test(line))
      throw new Error(`a line that is no frame: ${line}`);
  }
}

function readRecordedStreams(): readonly string[] {
  const folder = new URL("../cases/upstream/", import.meta.url);
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".sse"))
    .toSorted()
    .map((name) => readFileSync(new URL(name, folder), "utf8"));
}

/** Fields of one frame, frames left out, doubled and swapped, bytes: each of them, or several. */
function mutatedStream(original: string, random: () => number): Uint8Array {
  const frames = original.split(/(?<=\n\n)/u);
  for (let changes = Math.floor(random() * 4); changes > 0; changes -= 1) {
    if (frames.length === 0) break;
    const at = Math.floor(random() * frames.length);
    const frame = frames[at] ?? "";
    const kind = random();
    if (kind < 0.5) frames[at] = mutatedFrame(frame, random);
    else if (kind < 0.65) frames.splice(at, 1);
    else if (kind < 0.8) frames.splice(Math.floor(random() * frames.length), 0, frame);
    else if (kind < 0.98) frames.splice(at, 1, pick(frames, random), frame);
    else frames.splice(at, 1, ...Array.from({ length: 1_100 }, () => frame));
  }
  const bytes = Buffer.from(frames.join(""));
  return random() < 0.3 ? mutateBytes(bytes, random) : bytes;
}

function mutatedFrame(frame: string, random: () => number): string {
  const data = /^data: (\{.*\})$/mu.exec(frame)?.[1];
  if (data === undefined) return frame;
  try {
    const mutation: Mutation = {
      kind: pick(["replace", "replace", "remove", "duplicate", "add", "move", "stretch"], random),
      place: Math.floor(random() * 200),
      value: pick(values, random),
    };
    return `data: ${JSON.stringify(mutate(JSON.parse(data), mutation))}\n\n`;
  } catch {
    return frame;
  }
}

const values: readonly unknown[] = [
  null,
  true,
  0,
  -1,
  1,
  1.5,
  1e300,
  2 ** 53,
  "",
  " ",
  "}",
  '{"a":1}',
  "[DONE]",
  "stop",
  "tool_calls",
  "\ud800",
  "a\nb",
  [],
  {},
  [{ index: 0, id: "x", function: { name: "f", arguments: "{}" } }],
  { prompt_tokens: 5, completion_tokens: 0 },
  { content: "x", reasoning: "y" },
  { message: "context window", code: 503 },
];

function pick<Value>(from: readonly Value[], random: () => number): Value {
  const value = from[Math.floor(random() * from.length)];
  if (value === undefined) throw new Error("nothing to pick from");
  return value;
}
