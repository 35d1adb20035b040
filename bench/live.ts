import { execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Arm, openTributary, startMock } from "./arms.ts";
import { freePort, pinToOtherCore, programPath } from "./children.ts";
import { median, openConnections } from "./load.ts";
import { markdown } from "./markdown.ts";
import { type Figures, paced } from "./scenarios.ts";

// node bench/live.ts: by how much ten live streams of the operators' API delay 32 paced streams. Tabs of one browser
// share one of them, so that these are ten browsers; windows without and with them take turns.

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "12" },
    seconds: { type: "string", default: "3" },
    streams: { type: "string", default: "10" },
  },
});
const seconds = Number(values.seconds);

await using stack = new AsyncDisposableStack();
pinToOtherCore(process.pid);
const folder = await mkdtemp(join(tmpdir(), "tributary-live-"));
stack.defer(() => rm(folder, { recursive: true, force: true }));
const { origin } = stack.use(await startMock());
const connections = stack.use(openConnections());
const port = String(await freePort());
const arm = stack.use(
  await openTributary(origin, folder, {
    synchronous: "full",
    name: "live",
    environment: { TRIBUTARY_OPERATOR_PORT: port },
  }),
);
const token = newToken();
const scenario = paced("paced");
await scenario.measure(arm, { connections, seconds: 1 });
const [without, beside]: [Figures[], Figures[]] = [[], []];
for (let round = 0; round < Number(values.rounds); round += 1)
  for (const watched of round % 2 === 0 ? [false, true] : [true, false]) {
    process.stderr.write(`round ${String(round + 1)}, watched: ${String(watched)}\n`);
    (watched ? beside : without).push(await measure(arm, watched));
  }
const differences = (figure: "p50" | "p99"): readonly number[] =>
  beside.map((one, round) => (one[figure] ?? NaN) - (without[round]?.[figure] ?? NaN));
process.stdout.write(
  markdown([
    { windows: "without", ...cells(without) },
    { windows: `beside ${values.streams} live streams`, ...cells(beside) },
    {
      windows: "difference, pair by pair",
      "p50 ms": spread(differences("p50")),
      "p99 ms": spread(differences("p99")),
      "CPU of a chunk, us": "",
    },
  ]),
);

function newToken(): string {
  const words = [
    programPath("../src/cli/tributary.cjs"),
    "operator",
    "create",
    "bench",
    "--role",
    "viewer",
  ];
  const env = {
    PATH: process.env["PATH"],
    HOME: process.env["HOME"],
    TRIBUTARY_DATA_DIR: join(folder, "data-live"),
    TRIBUTARY_DEPLOYMENT_URL: origin,
  };
  const said = execFileSync(process.execPath, [...words, "--json"], { cwd: folder, env });
  return (JSON.parse(said.toString()) as { readonly token: string }).token;
}

async function measure(of: Arm, watched: boolean): Promise<Figures> {
  const left = new AbortController();
  const streams = watched ? Number(values.streams) : 0;
  let events = 0;
  const reading = Array.from({ length: streams }, async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/live`, {
      headers: { authorization: `Bearer ${token}` },
      signal: left.signal,
    });
    if (!answer.ok) throw new Error(`a live stream was answered ${String(answer.status)}`);
    for await (const piece of answer.body ?? []) if (piece.length > 0) events += 1;
  });
  const ended = Promise.allSettled(reading);
  const figures = await scenario.measure(of, { connections, seconds });
  left.abort();
  await ended;
  if (events < streams * seconds)
    throw new Error(`${String(events)} events came in ${String(streams)} streams`);
  return figures;
}

function cells(rounds: readonly Figures[]): Record<string, string> {
  const column = (name: string): string => spread(rounds.map((round) => round[name] ?? NaN));
  return { "p50 ms": column("p50"), "p99 ms": column("p99"), "CPU of a chunk, us": column("cpu") };
}

function spread(numbers: readonly number[]): string {
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  return `${median([...numbers]).toFixed(2)} (${low.toFixed(2)} to ${high.toFixed(2)})`;
}
