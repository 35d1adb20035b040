import type { Usage } from "../../src/conversation/generation-event.ts";
import type { FigureKind, RequestPlan } from "./plan.ts";
import { type Said, trueOutput } from "./scripted-generation.ts";
import type { Process } from "./world.ts";
import { ensure } from "./violation.ts";

/** What really happened to one request, as those outside saw it. */
export interface Story {
  readonly plan: RequestPlan;
  readonly said: Said;
  readonly servedBy: Process;
  /** What ended it first; null: nothing did. */
  stoppedBy: "client" | "lease" | "operator" | "service" | null;
  /** What the service answered its client; null: nothing yet. */
  told: { readonly type: string; readonly code: string | null } | null;
  /** When its settlement was first sent, by the clock that never jumps. */
  settledFromMs: number | null;
  /** Whether its admission was refused, or its answer never came. */
  notAdmitted: boolean;
}

/** Section 8's table: how it ended, and what that costs. */
export function ensureCharge(
  story: Story,
  settlement: { readonly outcome: string; readonly usage: Usage | null },
): void {
  const expected = expectedSettlement(story);
  const actual = `${settlement.outcome} ${figures(settlement.usage)}`;
  const wanted = `${expected.outcome} ${figures(expected.usage)}`;
  ensure(
    actual === wanted,
    "the charge of every ending",
    () => `${story.plan.id} is settled as ${actual}, but should be as ${wanted}`,
  );
}

function expectedSettlement({ notAdmitted, plan, said, stoppedBy }: Story): {
  readonly outcome: string;
  readonly usage: Figures | null;
} {
  // The answer was lost: what it may have reserved is given back.
  if (notAdmitted) return { outcome: "failed", usage: null };
  if (stoppedBy === "lease") return { outcome: "lease-lost", usage: null };
  if (stoppedBy === "operator") return { outcome: "cancelled-by-operator", usage: null };
  if (stoppedBy === "service") return { outcome: "failed", usage: null };
  // Running usage, else our own count.
  const input = said.runningInput ?? plan.inputTokensEstimate;
  const output = said.runningOutput ?? said.counted;
  const hadInput = said.runningInput !== null;
  switch (said.ending) {
    case "finished": {
      const { inputTokens, reported } = plan.script;
      return {
        outcome: "completed",
        usage: [
          stands[reported?.input ?? "missing"] ? inputTokens : input,
          cachedOf(plan, hadInput || stands[reported?.input ?? "missing"]),
          stands[reported?.output ?? "missing"] ? trueOutput(said) : output,
        ],
      };
    }
    case "failed":
      return { outcome: said.accepted ? "failed" : "refused", usage: null };
    case "cancelled":
    // Its client left before it was started.
    case null:
      return said.deltas > 0
        ? { outcome: "cancelled", usage: [input, cachedOf(plan, hadInput), output] }
        : { outcome: "cancelled-before-output", usage: null };
    default:
      return said.ending satisfies never;
  }
}

type Figures = readonly [input: number, cached: number, output: number];

/** The deployment's figure stands with that of the input, of which it is a part; our own count knows of no cache. */
function cachedOf({ script }: RequestPlan, stood: boolean): number {
  return stood ? Math.min(script.cachedTokens, script.inputTokens) : 0;
}

/** The contract's words, row by row: which figures of a deployment are charged, and which are replaced. */
const stands: Readonly<Record<FigureKind, boolean>> = {
  true: true,
  negative: false,
  fractional: false,
  missing: false,
  // Output above the allowance, input above the bound.
  above: false,
  // Output of 0 after output began; before, our own count is 0 as well.
  zero: false,
};

function figures(usage: Usage | Figures | null): string {
  if (usage === null) return "for nothing";
  const [input, cached, output] =
    "inputTokens" in usage
      ? [usage.inputTokens, usage.cachedInputTokens, usage.outputTokens]
      : usage;
  return `for ${String(input)} in, ${String(cached)} of them cached, ${String(output)} out`;
}
