import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { listBugs, openBugHunt } from "./bugs.ts";
import type { SharedServer } from "./postgres-store.ts";
import { explainSeed, runSeed, type Stores } from "./simulate.ts";
import { openSqliteStores } from "./sqlite-store.ts";

const usage = `npm run simulate -- [--seeds N] [--seed S] [--store sqlite|postgres] [--bugs] [--bug NAME] [--brief]
  --seeds N   runs the seeds 1 to N, or S to S + N - 1; 2000 when neither is given
  --seed S    runs the seed S alone, or begins with it
  --store     sqlite (in memory, the default) or postgres (a server of its own)
  --bugs      plants each bug that is kept for the store in a copy of the sources, and finds it within N seeds
  --bug NAME  of these those whose name has this in it
  --brief     tells of a broken rule in one line instead of shrinking its story`;

interface Wishes {
  readonly first: number;
  readonly count: number;
  readonly store: "sqlite" | "postgres";
  /** Plants the bugs whose names have this in them; null: none. */
  readonly bugs: string | null;
  readonly brief: boolean;
  /** A server that is there; null: one of its own. */
  readonly server: SharedServer | null;
}

/** What the command line asks for; throws an Error with words for its reader. */
function parseWishes(): Wishes | null {
  const { values } = parseArgs({
    options: {
      seeds: { type: "string" },
      seed: { type: "string" },
      store: { type: "string", default: "sqlite" },
      bugs: { type: "boolean", default: false },
      bug: { type: "string" },
      brief: { type: "boolean", default: false },
      // Of copies with planted bugs, which share a server.
      server: { type: "string" },
      database: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  const { brief, bug, bugs, database, help, seed, seeds, server, store } = values;
  if (help) return null;
  if (store !== "sqlite" && store !== "postgres")
    throw new Error(`--store must be sqlite or postgres, not ${store}.`);
  return {
    first: seed === undefined ? 1 : wholeNumber(seed, "seed"),
    count: seeds === undefined ? (seed === undefined ? 2_000 : 1) : wholeNumber(seeds, "seeds"),
    store,
    server: server === undefined || database === undefined ? null : { folder: server, database },
    bugs: bug ?? (bugs ? "" : null),
    brief,
  };
}

function wholeNumber(text: string, name: string): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= 1) return value;
  throw new Error(`--${name} must be a whole number of 1 or more, not ${text}.`);
}

async function run(wishes: Wishes): Promise<boolean> {
  if (wishes.bugs !== null) return findBugs(wishes, wishes.bugs);
  if (wishes.store === "postgres") {
    // Only then: it wants a server's programs.
    const { openPostgresStores } = await import("./postgres-store.ts");
    await using stores = await openPostgresStores(wishes.server);
    return await simulate(wishes, stores);
  }
  using stores = openSqliteStores();
  return await simulate(wishes, stores);
}

/** Stops at the first seed that breaks a rule: the shortest way to its story. */
async function simulate(wishes: Wishes, stores: Stores): Promise<boolean> {
  const { brief, count, first, store } = wishes;
  const startedMs = performance.now();
  let steps = 0;
  for (let seed = first; seed < first + count; seed += 1) {
    const { steps: taken, violation } = await runSeed(seed, stores);
    steps += taken;
    if (violation === null) continue;
    console.log(`seed ${String(seed)}: ${violation.message}`);
    if (!brief) {
      const { message, trace } = await explainSeed(seed, violation.rule, stores);
      console.log(`\nshrunk:\n${trace.join("\n")}\n\n${message}\n`);
      const on = store === "sqlite" ? "" : ` --store ${store}`;
      console.log(`again: npm run simulate -- --seed ${String(seed)}${on}\n`);
    }
    console.log(`${String(seed - first)} passed, 1 failed`);
    return false;
  }
  const seconds = (performance.now() - startedMs) / 1_000;
  console.log(
    `${store}: seeds ${String(first)} to ${String(first + count - 1)}, ${String(steps)} steps, ${seconds.toFixed(1)} s`,
  );
  if (stores.told !== undefined) console.log(stores.told());
  console.log(`${String(count)} passed, 0 failed`);
  return true;
}

/** Each bug must be found, each within so many seeds. */
async function findBugs({ count, store }: Wishes, named: string): Promise<boolean> {
  let found = 0;
  const bugs = listBugs(store).filter((bug) => bug.includes(named));
  console.log(`${"bug".padEnd(42)}${"seed".padStart(6)}${"seconds".padStart(9)}  found by`);
  await using hunt = await openBugHunt(store);
  const reports = inOrder(bugs, (one) => hunt.find(one, count));
  for await (const { bug, rule, seconds, seed } of reports) {
    if (seed !== null) found += 1;
    const at = seed === null ? "none" : String(seed);
    console.log(`${bug.padEnd(42)}${at.padStart(6)}${seconds.toFixed(1).padStart(9)}  ${rule}`);
  }
  console.log(`${String(found)} passed, ${String(bugs.length - found)} failed`);
  return found === bugs.length;
}

/** As many at a time as there are processors; what they come to, in their order. */
async function* inOrder<One, Result>(
  all: readonly One[],
  work: (one: One) => Promise<Result>,
): AsyncGenerator<Result> {
  const results = all.map(() => Promise.withResolvers<Result>());
  // What fails is thrown when its turn comes.
  for (const { promise } of results) promise.catch(() => {});
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < all.length; at = next++) {
      const [one] = all.slice(at, at + 1);
      const result = results[at];
      if (one !== undefined && result !== undefined)
        await work(one).then(result.resolve, result.reject);
    }
  };
  for (let left = availableParallelism(); left > 0; left -= 1) void worker();
  for (const { promise } of results) yield await promise;
}

try {
  const wishes = parseWishes();
  if (wishes === null) console.log(usage);
  else process.exitCode = (await run(wishes)) ? 0 : 1;
} catch (error) {
  console.error(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
  process.exitCode = 2;
}
