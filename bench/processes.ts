import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Arm, openTributary, startMock } from "./arms.ts";
import { programPath } from "./children.ts";
import { buildRequest, openConnections, percentile, runStream } from "./load.ts";
import { markdown } from "./markdown.ts";
import { cpuSeconds } from "./process-usage.ts";
import { importSqliteLedger } from "./import-ledger.ts";
import type { ServiceFigures, ServiceOrder } from "./processes-child.ts";
import { spread } from "./report.ts";

// Several processes on one SQLite ledger: separate services, which take turns on its file, and the processes of one
// service, of which one writes. Nothing is bound to a core: on two cores, which the load generator and the mock share,
// only the wait and the CPU of a request tell anything.

/** What is measured, how often and how long. */
export interface ProcessesBench {
  readonly rounds: number;
  readonly seconds: number;
  /** The folder of another checkout; null: none. */
  readonly against: string | null;
}

const callers = 32;
const answerMs = 20;

type Row = Readonly<Record<"p50" | "p99" | "longest" | "cpu" | "rate", number>>;

/** Measures all arms in turns, and prints a table. */
export async function benchProcesses(bench: ProcessesBench): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "tributary-processes-"));
  stack.defer(() => rm(folder, { recursive: true, force: true }));
  const arms = new Map<string, () => Promise<Row>>();
  const here = programPath("..");
  const checkouts = [...(bench.against === null ? [] : [bench.against]), here];
  for (const services of [1, 2])
    for (const checkout of checkouts) {
      const name = `${String(services)} x ledger${checkout === here ? "" : ", before"}`;
      const path = join(folder, `${name}.sqlite`);
      arms.set(name, () => measureServices({ services, checkout, path, ...bench }));
    }
  const { origin } = stack.use(await startMock());
  for (const processes of [1, 2, 3]) {
    const name = `TRIBUTARY_PROCESSES=${String(processes)}`;
    const environment = { TRIBUTARY_PROCESSES: String(processes), TRIBUTARY_LOG_LEVEL: "info" };
    const arm = stack.use(
      await openTributary(origin, folder, {
        synchronous: "full",
        everyCore: true,
        name,
        environment,
      }),
    );
    arms.set(name, () => measureArm(arm, bench.seconds));
  }
  const found = new Map<string, Row[]>([...arms.keys()].map((name) => [name, []]));
  for (let round = 0; round < bench.rounds; round += 1)
    for (const [name, measure] of round % 2 === 0 ? arms : [...arms].toReversed()) {
      process.stderr.write(`round ${String(round + 1)}: ${name}\n`);
      found.get(name)?.push(await measure());
    }
  process.stdout.write(markdown([...found].map(([name, rows]) => describe(name, rows))));
}

function describe(arm: string, rows: readonly Row[]): Record<string, string> {
  const cell = (figure: keyof Row, digits: number): string =>
    spread(
      rows.map((row) => row[figure]),
      digits,
    );
  return {
    arm,
    "admission p50 ms": cell("p50", 1),
    "p99 ms": cell("p99", 1),
    "longest ms": cell("longest", 0),
    "CPU ms/request": cell("cpu", 3),
    "requests/s": cell("rate", 0),
  };
}

/** Admissions of services without HTTP: `authorize` and `admit` as the callers see them. */
async function measureServices(
  load: Pick<ServiceOrder, "checkout" | "path" | "seconds"> & { readonly services: number },
): Promise<Row> {
  const { checkout, path, seconds, services } = load;
  const shares = await makeKeys(checkout, path, services);
  const children = shares.map((keys) => {
    const child = fork(programPath("processes-child.ts"));
    const order: ServiceOrder = { checkout, path, keys, seconds, answerMs };
    child.send(order);
    return child;
  });
  const exits = children.map((child) => once(child, "exit"));
  await Promise.all(children.map((child) => once(child, "message")));
  const answers = children.map((child) => once(child, "message"));
  for (const child of children) child.send("go");
  const figures = (await Promise.all(answers)).map(([answer]) => answer as ServiceFigures);
  await Promise.all(exits);
  const waits = figures.flatMap(({ admissionMs }) => admissionMs);
  const cpuMs = figures.reduce((sum, figure) => sum + figure.cpuMs, 0);
  return rowOf(waits, cpuMs, seconds);
}

function rowOf(waits: number[], cpuMs: number, seconds: number): Row {
  return {
    p50: percentile(waits, 0.5),
    p99: percentile(waits, 0.99),
    longest: percentile(waits, 1),
    cpu: cpuMs / waits.length,
    rate: waits.length / seconds,
  };
}

/** A key and an account a caller, for each service. */
async function makeKeys(
  checkout: string,
  path: string,
  services: number,
): Promise<readonly string[][]> {
  const { openSqliteLedger } = await importSqliteLedger(checkout);
  const rules = {
    prices: { inputNanosPerMillion: 1n, outputNanosPerMillion: 1n },
    concurrencyPerAccount: 1,
    requestsPerMinute: 1,
    leaseMs: 60_000,
  };
  await using ledger = await openSqliteLedger(
    { path, synchronous: "full", ...rules },
    { now: Date.now },
  );
  const shares = Array.from({ length: services }, (): string[] => []);
  for (let caller = 0; caller < callers; caller += 1) {
    const account = await ledger.createAccount("bench", 10n ** 17n);
    shares[caller % services]?.push((await ledger.createKey(account.id, "bench")).secret);
  }
  return shares;
}

/** Whole requests over HTTP: the time to the first content is that of the admission, and a little for the rest. */
async function measureArm(arm: Arm, seconds: number): Promise<Row> {
  using connections = openConnections();
  const request = buildRequest({ chunks: 2, intervalMs: answerMs });
  const waits: number[] = [];
  const startMs = performance.now();
  const before = cpuSeconds(arm.processIds());
  const client = async (): Promise<void> => {
    while (performance.now() < startMs + seconds * 1_000) {
      const { firstMs } = await runStream(arm, request, { connections, measure: true });
      waits.push(firstMs);
    }
  };
  await Promise.all(Array.from({ length: callers }, client));
  const cpuMs = (cpuSeconds(arm.processIds()) - before) * 1_000;
  return rowOf(waits, cpuMs, (performance.now() - startMs) / 1_000);
}
