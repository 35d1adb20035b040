import { parseArgs } from "node:util";
import { findBug, listBugs } from "./bugs.ts";
import { explainSeed, runSeed, type Stores } from "./simulate.ts";
import { openSqliteStores } from "./sqlite-store.ts";

const usage =
  "npm run simulate -- [--seeds N] [--seed S] [--store sqlite|postgres] [--bugs]\n  --seeds N   runs the seeds 1 to N, or S to S + N - 1; 2000 without it\n  --seed S    runs the seed S alone, unless --seeds is there too\n  --store     sqlite (in memory, the default) or postgres (a server of its own)\n  --bugs      plants every bug of tests/simulation/bugs in a copy, and finds it";

const { values } = parseArgs({
  options: {
    seeds: { type: "string" },
    seed: { type: "string" },
    store: { type: "string", default: "sqlite" },
    bugs: { type: "boolean", default: false },
    brief: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

function wholeNumber(text: string, name: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  console.error(`--${name} must be a whole number of 1 or more, not ${text}.\n${usage}`);
  process.exit(2);
}

if (values.help) {
  console.log(usage);
} else {
  const first = values.seed === undefined ? 1 : wholeNumber(values.seed, "seed");
  const count =
    values.seeds === undefined
      ? values.seed === undefined
        ? 2_000
        : 1
      : wholeNumber(values.seeds, "seeds");
  process.exitCode = (await run(first, count)) ? 0 : 1;
}

async function run(first: number, count: number): Promise<boolean> {
  if (values.bugs) return findBugs(count);
  using stores = openSqliteStores();
  return await simulate(first, count, stores);
}

/** Stops at the first seed that breaks a rule: the shortest way to its story. */
async function simulate(first: number, count: number, stores: Stores): Promise<boolean> {
  const startedMs = performance.now();
  let steps = 0;
  for (let seed = first; seed < first + count; seed += 1) {
    const outcome = await runSeed(seed, stores);
    steps += outcome.steps;
    if (outcome.violation === null) continue;
    console.log(`seed ${String(seed)}: ${outcome.violation.message}`);
    if (values.brief) return false;
    const { message, trace } = await explainSeed(seed, outcome.violation.rule, stores);
    console.log(`\nshrunk:\n${trace.join("\n")}\n\n${message}\n`);
    console.log(`again: npm run simulate -- --seed ${String(seed)}\n`);
    console.log(`${String(seed - first)} passed, 1 failed`);
    return false;
  }
  const seconds = (performance.now() - startedMs) / 1_000;
  console.log(
    `${String(count)} seeds from ${String(first)}, ${String(steps)} steps, ${seconds.toFixed(1)} s`,
  );
  console.log(`${String(count)} passed, 0 failed`);
  return true;
}

/** Each bug must be found, each within so many seeds. */
async function findBugs(seeds: number): Promise<boolean> {
  let found = 0;
  const bugs = listBugs();
  console.log(`${"bug".padEnd(42)}${"seed".padStart(6)}${"seconds".padStart(9)}  found by`);
  for (const bug of bugs) {
    const { rule, seconds, seed } = await findBug(bug, seeds);
    if (seed !== null) found += 1;
    const at = seed === null ? "-" : String(seed);
    console.log(`${bug.padEnd(42)}${at.padStart(6)}${seconds.toFixed(1).padStart(9)}  ${rule}`);
  }
  console.log(`${String(found)} passed, ${String(bugs.length - found)} failed`);
  return found === bugs.length;
}
