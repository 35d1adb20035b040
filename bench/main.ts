import { parseArgs } from "node:util";
import { benchArms, checkRatios } from "./arm-bench.ts";

const usage = `npm run bench [-- WHAT] [OPTIONS]
  (nothing)        requests, chunks and memory, arm beside arm
  peers            the same beside other gateways, which are installed for it
  attacks [NAME]   one account against another
  streams          500, 1,000 and 1,500 streams of 20 chunks a second
  processes        several processes on one SQLite ledger
  ledger           the ledger's steps in each store; with --against their CPU before and now, in turns
  telemetry [pairs] what is sent by OpenTelemetry, for a request; pairs: the service that sends it beside one that does not
  engine           the embedded engine
--only ARM,...     --scenarios NAME,...   --formats chat,messages,responses
--rounds N         --seconds N (a window) --minutes N (at most)
--against FOLDER (another checkout, beside this one)
--requests N (of each of the ledger's callers in a round; --only sqlite,postgres)
--smoke            a short round, for CI`;

const { positionals, values } = parseArgs({
  options: {
    smoke: { type: "boolean", default: false },
    only: { type: "string" },
    scenarios: { type: "string" },
    formats: { type: "string" },
    rounds: { type: "string" },
    seconds: { type: "string" },
    minutes: { type: "string" },
    against: { type: "string" },
    requests: { type: "string" },
  },
  allowPositionals: true,
});
const { smoke } = values;
const [what, name] = positionals;
if (what === "engine") {
  const { benchEngine } = await import("./engine.ts");
  await benchEngine({ smoke, cacheDir: null });
} else if (what === "attacks") {
  const { benchAttacks } = await import("./attack-bench.ts");
  const only = name ?? null;
  await benchAttacks(
    smoke
      ? { only, seconds: 2, rounds: 1, timed: false }
      : { only, seconds: 6, rounds: 5, timed: true },
  );
} else if (what === "streams") {
  const { benchStreams } = await import("./streams.ts");
  await benchStreams({
    counts: name === undefined ? [500, 1_000, 1_500] : name.split(",").map(Number),
    rounds: positive(values.rounds, 6),
    seconds: positive(values.seconds, 6),
    against: values.against ?? null,
  });
} else if (what === "processes") {
  const { benchProcesses } = await import("./processes.ts");
  await benchProcesses({
    rounds: positive(values.rounds, 6),
    seconds: positive(values.seconds, 4),
    against: values.against ?? null,
  });
} else if (what === "telemetry" && name === undefined) {
  const { benchTelemetry } = await import("./telemetry.ts");
  await benchTelemetry();
} else if (what === "ledger") {
  const { benchLedger } = await import("./ledger.ts");
  const { compareLedgers } = await import("./ledger-arms.ts");
  if (values.against === undefined) await benchLedger(smoke ? 100 : 1_500);
  else
    await compareLedgers({
      against: values.against,
      rounds: positive(values.rounds, 10),
      requests: positive(values.requests, 100),
      stores: list(values.only) ?? ["sqlite", "postgres"],
    });
} else if (what === undefined && smoke) {
  await checkRatios();
} else if (what === undefined || what === "peers" || what === "telemetry") {
  await benchArms({
    peers: what === "peers",
    only: list(values.only),
    scenarios: list(values.scenarios),
    formats: list(values.formats) ?? (what === "peers" ? null : ["chat"]),
    rounds: positive(values.rounds, 6),
    seconds: positive(values.seconds, what === "peers" ? 1 : 2),
    minutes: positive(values.minutes, 18),
    against: values.against ?? null,
    telemetry: what === "telemetry",
  });
} else throw new Error(usage);
process.exit();

function list(value: string | undefined): readonly string[] | null {
  return value?.split(",") ?? null;
}

function positive(value: string | undefined, otherwise: number): number {
  const number = Number(value ?? otherwise);
  if (!(number > 0)) throw new Error(usage);
  return number;
}
