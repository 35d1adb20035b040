import { inClumps, planOf, type Plan, type Rules } from "./plan.ts";
import { openSequence } from "./random.ts";
import { runPlan, type Outcome } from "./run-plan.ts";
import { withScenes } from "./scenes.ts";
import { shrinkPlan } from "./shrink.ts";
import type { SimulatedStore } from "./simulated-store.ts";

/** Gives every run an empty ledger. */
export interface Stores {
  fresh(rules: Rules): SimulatedStore | Promise<SimulatedStore>;
  /** Its statements are shared by requests: those of two seeds of three arrive in clumps. */
  readonly sharesStatements?: true;
  /** What has happened inside it until now, in words. */
  readonly told?: () => string;
}

/** The plan of a seed for a store. */
export function planFor(seed: number, { sharesStatements }: Stores): Plan {
  const plan = planOf(seed);
  const clumps = sharesStatements === true && seed % 3 !== 0;
  const arranged = clumps ? inClumps(openSequence(seed + 11_000_027), plan) : plan;
  return withScenes(openSequence(seed + 7_000_003), arranged);
}

/** A seed that broke a rule, and the smallest plan found that still breaks it. */
export interface Finding {
  readonly seed: number;
  readonly rule: string;
  readonly message: string;
  readonly plan: Plan;
  readonly trace: readonly string[];
}

/** Runs one seed. */
export async function runSeed(seed: number, stores: Stores): Promise<Outcome> {
  const plan = planFor(seed, stores);
  return runPlan(plan, seed, { store: await stores.fresh(plan.rules), traced: false });
}

/** Shrinks the plan of a seed that breaks `rule`, and tells its story. */
export async function explainSeed(seed: number, rule: string, stores: Stores): Promise<Finding> {
  const run = async (plan: Plan, traced: boolean): Promise<Outcome> =>
    runPlan(plan, seed, { store: await stores.fresh(plan.rules), traced });
  const plan = await shrinkPlan(planFor(seed, stores), async (smaller) => {
    const { violation } = await run(smaller, false);
    return violation?.rule === rule;
  });
  const { trace, violation } = await run(plan, true);
  return { seed, rule, message: violation?.message ?? "it did not happen again", plan, trace };
}
