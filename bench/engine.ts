import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { parseConfig } from "../src/config/config.ts";
import { fetchModel, findModel } from "../engine/src/models.ts";
import {
  type DirectArm,
  type Measured,
  type Message,
  openDirectModel,
  openService,
  type ServiceArm,
} from "./engine-arms.ts";
import { percentile } from "./load.ts";
import { markdown } from "./markdown.ts";

// The embedded engine with its default weights, as the whole service serves it. Arms take turns within a round, and
// what is compared was measured in the same round, as what else the machine does changes from minute to minute.

/** One round's figures. */
export interface EngineRound {
  /** Tokens a second, of one stream and of four together. */
  readonly one: number;
  readonly four: number;
  /** CPU milliseconds of the model's process for a token; null where the system does not tell. */
  readonly oneCpuMs: number | null;
  readonly fourCpuMs: number | null;
  /** How late the service's event loop was under four streams, at p99. */
  readonly lateMs: number;
  /** Tokens a second of the whole answer, prompt included: the library alone, and through the service. */
  readonly direct: number;
  readonly http: number;
  /** Until the first text of a second turn, of a conversation that is unknown and of one that goes on. */
  readonly unknownMs: number;
  readonly knownMs: number;
  readonly knownTokens: number;
}

/** How long a benchmark takes. */
export interface EngineBenchSettings {
  readonly smoke: boolean;
  /** Where the weights are, or come to; null: where the service keeps them. */
  readonly cacheDir: string | null;
}

interface Sizes {
  readonly rounds: number;
  readonly outputTokens: number;
  readonly conversationTokens: number;
}

const fullSizes: Sizes = { rounds: 5, outputTokens: 128, conversationTokens: 1_000 };
const smokeSizes: Sizes = { rounds: 1, outputTokens: 24, conversationTokens: 400 };

/** Measures, checks that the figures can be true, prints a table. */
export async function benchEngine(settings: EngineBenchSettings): Promise<readonly EngineRound[]> {
  const sizes = settings.smoke ? smokeSizes : fullSizes;
  const loadBefore = loadavg()[0] ?? 0;
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tributary-bench-engine-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const cacheDir = settings.cacheDir ?? readCacheDir(folder);
  const modelFile = await fetchModel(findModel(null), {
    folders: { dataDir: folder, cacheDir },
    environment: process.env,
    thorough: false,
    onProgress: () => undefined,
    signal: AbortSignal.timeout(300_000),
  });
  const service = stack.use(await openService(folder, cacheDir));
  const threads = Math.max(1, availableParallelism() - 1);
  const direct = stack.use(await openDirectModel(modelFile, threads));
  const rounds: EngineRound[] = [];
  await measureStreams(service, 4, 8);
  for (let round = 0; round < sizes.rounds; round += 1) {
    process.stderr.write(`round ${String(round + 1)} of ${String(sizes.rounds)}\n`);
    rounds.push(await measureRound({ service, direct, sizes, round }));
  }
  for (const round of rounds) ensureSane(round, sizes);
  print({ rounds, sizes, service, threads, loadBefore });
  return rounds;
}

function readCacheDir(folder: string): string {
  const parsed = parseConfig({ ...process.env }, folder);
  if (!parsed.ok) throw new Error("the settings of the service are wrong", { cause: parsed });
  return parsed.config.cacheDir;
}

interface RoundOrder {
  readonly service: ServiceArm;
  readonly direct: DirectArm;
  readonly sizes: Sizes;
  readonly round: number;
}

async function measureRound({ direct, round, service, sizes }: RoundOrder): Promise<EngineRound> {
  const { outputTokens } = sizes;
  const one = await measureStreams(service, 1, outputTokens);
  await service.readLatenessMs();
  const four = await measureStreams(service, 4, outputTokens);
  const lateMs = await service.readLatenessMs();
  const compared = await compareDirect(service, direct, outputTokens);
  const conversation = await measureConversation(service, sizes.conversationTokens, round);
  return {
    one: one.tokensPerSecond,
    four: four.tokensPerSecond,
    oneCpuMs: one.cpuMs,
    fourCpuMs: four.cpuMs,
    lateMs,
    ...compared,
    ...conversation,
  };
}

const topics = ["the sea", "a small robot", "an old lighthouse", "a city of bees"];

async function measureStreams(service: ServiceArm, streams: number, outputTokensMax: number) {
  const cpuBefore = service.modelCpuSeconds();
  const startMs = performance.now();
  const answers = await Promise.all(
    topics.slice(0, streams).map((topic) =>
      service.ask({
        messages: [{ role: "user", content: `Write a very long story about ${topic}.` }],
        outputTokensMax,
        temperature: null,
      }),
    ),
  );
  const seconds = (performance.now() - startMs) / 1_000;
  const cpuAfter = service.modelCpuSeconds();
  const tokens = answers.reduce((sum, answer) => sum + answer.outputTokens, 0);
  const known = cpuBefore !== null && cpuAfter !== null;
  return {
    tokensPerSecond: tokens / seconds,
    cpuMs: known ? ((cpuAfter - cpuBefore) * 1_000) / tokens : null,
  };
}

/** At temperature 0 the service evaluates alone, with the threads that the library is given here. */
async function compareDirect(service: ServiceArm, direct: DirectArm, outputTokensMax: number) {
  const user = "Describe a walk through a forest in autumn, in as many words as you can.";
  const alone = await direct.ask(user, outputTokensMax);
  const messages: readonly Message[] = [{ role: "user", content: user }];
  const served = await service.ask({ messages, outputTokensMax, temperature: 0 });
  if (served.inputTokens !== alone.inputTokens) {
    throw new Error(
      `not the same prompt: ${String(served.inputTokens)} tokens through the service, ${String(alone.inputTokens)} directly`,
    );
  }
  return { direct: perSecond(alone), http: perSecond(served) };
}

function perSecond({ ms, outputTokens }: Pick<Measured, "ms" | "outputTokens">): number {
  return (outputTokens * 1_000) / ms;
}

/** Each conversation begins with a name of its own, so that nothing of it is known when it begins. */
async function measureConversation(service: ServiceArm, tokens: number, round: number) {
  const turns = (name: string): readonly Message[] => [
    { role: "system", content: `${name} ${String(round)}. You are a friendly helper.` },
    { role: "user", content: "The fox is red and the river is wide. ".repeat(tokens / 10) },
  ];
  const question = { outputTokensMax: 4, temperature: null };
  const first = await service.ask({ messages: turns("Known"), ...question });
  const more: readonly Message[] = [
    { role: "assistant", content: first.text },
    { role: "user", content: "And then?" },
  ];
  const known = await service.ask({ messages: [...turns("Known"), ...more], ...question });
  const unknown = await service.ask({ messages: [...turns("Strange"), ...more], ...question });
  if (unknown.cachedTokens > tokens / 4) throw new Error("the strange conversation was known");
  return {
    knownMs: known.firstMs,
    unknownMs: unknown.firstMs,
    knownTokens: known.cachedTokens,
  };
}

/** Throws when a figure cannot be one of a model that answered. Says nothing of how good it is. */
function ensureSane(round: EngineRound, sizes: Sizes): void {
  const { direct, four, http, knownMs, knownTokens, lateMs, one, unknownMs } = round;
  for (const [name, value] of Object.entries({ one, four, direct, http })) {
    if (!(value > 0.05 && value < 100_000)) throw new Error(`${name}: ${String(value)} tokens/s`);
  }
  for (const [name, value] of Object.entries({ knownMs, unknownMs })) {
    if (!(value > 0 && value < 600_000)) throw new Error(`${name}: ${String(value)} ms`);
  }
  if (!(lateMs >= 0 && lateMs < 60_000)) throw new Error(`late by ${String(lateMs)} ms`);
  if (knownTokens < sizes.conversationTokens * 0.8) {
    throw new Error(`only ${String(knownTokens)} tokens of the conversation were known`);
  }
}

interface Printed {
  readonly rounds: readonly EngineRound[];
  readonly sizes: Sizes;
  readonly service: ServiceArm;
  readonly threads: number;
  readonly loadBefore: number;
}

function print({ loadBefore, rounds, service, sizes, threads }: Printed): void {
  const median = (read: (round: EngineRound) => number): number =>
    percentile(rounds.map(read), 0.5);
  const shown = (read: (round: EngineRound) => number, digits: number): string =>
    median(read).toFixed(digits);
  const { conversationTokens, outputTokens } = sizes;
  const table = [
    {
      what: "one stream, four streams: tokens a second",
      first: shown(({ one }) => one, 1),
      second: shown(({ four }) => four, 1),
      ratio: `${shown(({ four, one }) => four / one, 2)} times`,
      goal: "1.5 times",
    },
    {
      what: `the library alone, through the service: tokens a second, ${String(threads)} threads`,
      first: shown(({ direct }) => direct, 1),
      second: shown(({ http }) => http, 1),
      ratio: `${shown(({ direct, http }) => (http * 100) / direct, 0)} %`,
      goal: "95 %",
    },
    {
      what: `second turn of ${String(conversationTokens)} tokens, unknown and known: ms to the first text`,
      first: shown(({ unknownMs }) => unknownMs, 0),
      second: shown(({ knownMs }) => knownMs, 0),
      ratio: `${shown(({ knownMs, unknownMs }) => unknownMs / knownMs, 1)} times sooner`,
      goal: "3 times",
    },
    {
      what: "event loop of the service late under four streams, p99: ms",
      first: "",
      second: shown(({ lateMs }) => lateMs, 1),
      ratio: `${Math.max(...rounds.map(({ lateMs }) => lateMs)).toFixed(1)} at worst`,
      goal: "20",
    },
  ];
  const load = `load ${loadBefore.toFixed(1)} before, ${(loadavg()[0] ?? 0).toFixed(1)} after`;
  process.stdout.write(
    `Node ${process.version}, ${service.build}, ${String(availableParallelism())} cores, ${load}\n` +
      `Medians of ${String(rounds.length)} rounds, answers of ${String(outputTokens)} tokens\n\n`,
  );
  process.stdout.write(markdown(table));
  const [{ fourCpuMs, oneCpuMs } = { fourCpuMs: null, oneCpuMs: null }] = rounds;
  if (fourCpuMs === null || oneCpuMs === null) return;
  process.stdout.write(
    `\nCPU of the model's process for a token: ${shown((round) => round.oneCpuMs ?? 0, 1)} ms in one stream, ` +
      `${shown((round) => round.fourCpuMs ?? 0, 1)} ms in four\n`,
  );
}
