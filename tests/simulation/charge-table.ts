import type { Usage } from "../../src/conversation/generation-event.ts";
import type { RequestPlan } from "./plan.ts";
import type { Said } from "./scripted-generation.ts";
import type { Process } from "./world.ts";
import { ensure } from "./violation.ts";

/** What really happened to one request, as those outside saw it. */
export interface Story {
  readonly plan: RequestPlan;
  readonly said: Said;
  readonly servedBy: Process;
  /** Who ended it first; null: nobody. */
  stoppedBy: "client" | "lease" | "service" | null;
  /** What the service told its client; null: nothing yet. */
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
  readonly usage: readonly [number, number] | null;
} {
  // The answer was lost: what it may have reserved is given back.
  if (notAdmitted) return { outcome: "failed", usage: null };
  if (stoppedBy === "lease") return { outcome: "lease-lost", usage: null };
  if (stoppedBy === "service") return { outcome: "failed", usage: null };
  const counted: readonly [number, number] = [
    plan.inputTokensEstimate,
    Math.max(said.deltas, Math.ceil(said.characters / 4)),
  ];
  switch (said.ending) {
    case "finished":
      return {
        outcome: "completed",
        usage: credible([pair(plan.script.reported), pair(said.running), counted]),
      };
    case "failed":
      return { outcome: said.accepted ? "failed" : "refused", usage: null };
    case "cancelled":
    // Its client left before it was started.
    case null:
      return said.deltas > 0
        ? { outcome: "cancelled", usage: credible([pair(said.running), counted]) }
        : { outcome: "cancelled-before-output", usage: null };
    default:
      return said.ending satisfies never;
  }
}

function pair(usage: Usage | null): readonly [number, number] | null {
  return usage === null ? null : [usage.inputTokens, usage.outputTokens];
}

/** Figure by figure the first that can be one. */
function credible(
  candidates: readonly (readonly [number, number] | null)[],
): readonly [number, number] {
  const first = (index: 0 | 1): number =>
    candidates
      .map((candidate) => candidate?.[index] ?? -1)
      .find((figure) => Number.isSafeInteger(figure) && figure >= 0) ?? 0;
  return [first(0), first(1)];
}

function figures(usage: Usage | readonly [number, number] | null): string {
  if (usage === null) return "for nothing";
  const [input, output] = "inputTokens" in usage ? [usage.inputTokens, usage.outputTokens] : usage;
  return `for ${String(input)} in, ${String(output)} out`;
}
