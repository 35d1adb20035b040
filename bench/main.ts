import { parseArgs } from "node:util";
import { benchArms, checkRatios, namesOf } from "./arm-bench.ts";

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

const { positionals, values } = readArguments();
const { smoke } = values;
const [what, name] = positionals;
const names = namesOf(what === "peers");
if (values.help) refuse(null);
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
      stores: list("--only", values.only, ["sqlite", "postgres"]) ?? ["sqlite", "postgres"],
    });
} else if (what === undefined && smoke) {
  await checkRatios();
} else if (what === undefined || what === "peers" || what === "telemetry") {
  await benchArms({
    peers: what === "peers",
    only: list("--only", values.only, names.arms),
    scenarios: list("--scenarios", values.scenarios, names.scenarios),
    formats:
      list("--formats", values.formats, names.formats) ?? (what === "peers" ? null : ["chat"]),
    rounds: positive(values.rounds, 6),
    seconds: positive(values.seconds, what === "peers" ? 1 : 2),
    minutes: positive(values.minutes, 18),
    against: values.against ?? null,
    telemetry: what === "telemetry",
  });
} else refuse(`There is no ${what}.`);
process.exit();

function readArguments() {
  const text = { type: "string" } as const;
  const flag = { type: "boolean", default: false } as const;
  try {
    return parseArgs({
      options: {
        help: flag,
        smoke: flag,
        only: text,
        scenarios: text,
        formats: text,
        rounds: text,
        seconds: text,
        minutes: text,
        against: text,
        requests: text,
      },
      allowPositionals: true,
    });
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error));
  }
}

/** The names of an option, each of them one that there is; null where it is not given. */
function list(
  option: "--only" | "--scenarios" | "--formats",
  value: string | undefined,
  known: readonly string[],
): readonly string[] | null {
  const names = value?.split(",") ?? null;
  for (const one of names ?? [])
    if (!known.includes(one)) refuse(`${option}: there is no ${one}, but ${known.join(", ")}.`);
  return names;
}

function positive(value: string | undefined, otherwise: number): number {
  const number = Number(value ?? otherwise);
  if (!(number > 0)) refuse(`${String(value)} is not a number above 0.`);
  return number;
}

/** Ends the process with what can be asked for, as help or beside what was wrong. */
function refuse(wrong: string | null): never {
  if (wrong === null) console.log(usage);
  else console.error(`${wrong}\n\n${usage}`);
  process.exit(wrong === null ? 0 : 2);
}
