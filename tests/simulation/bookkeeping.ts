import type { AccountId, KeyId, RequestId } from "../../src/ledger/scalars.ts";
import type { Sequence } from "./random.ts";
import { usageQuestionOf, type PlannedQuestion } from "./usage-model.ts";

/** What is read and kept beside the requests. */
export type Bookkeeping =
  /** Sums of usage are kept, up to what has ended until then. */
  | { readonly type: "add-up" }
  | { readonly type: "usage"; readonly question: PlannedQuestion }
  /** An operator looks at an account, which is paid a grant that is due. */
  | { readonly type: "look"; readonly accountId: AccountId }
  /** Keys that end soon are announced. */
  | { readonly type: "announce" };

interface BookkeepingIncident {
  readonly when:
    | { readonly atMs: number }
    | { readonly requestId: RequestId; readonly phase: "admitted" | "settle-done" | "ended" };
  readonly what: Bookkeeping;
}

/** When that happens in a run, and what is asked at its end. */
export function bookkeepingOf(
  random: Sequence,
  plan: {
    readonly accounts: readonly {
      readonly id: AccountId;
      readonly keys: readonly { readonly id: KeyId }[];
    }[];
    readonly requests: readonly { readonly id: RequestId; readonly accountId: AccountId }[];
    readonly spanMs: number;
    readonly startsAtMs: number;
  },
): {
  readonly incidents: readonly BookkeepingIncident[];
  readonly questions: readonly PlannedQuestion[];
} {
  const { requests, spanMs } = plan;
  const incidents = Array.from({ length: random.between(0, 5) }, (): BookkeepingIncident => {
    const { accountId, id: requestId } = random.pick(requests);
    const what = random.pick<() => Bookkeeping>([
      () => ({ type: "add-up" }),
      () => ({ type: "add-up" }),
      () => ({ type: "usage", question: usageQuestionOf(random, plan) }),
      () => ({ type: "look", accountId }),
      () => ({ type: "announce" }),
    ])();
    const phase = random.pick(["admitted", "settle-done", "ended", "ended"] as const);
    const when = random.chance(0.7)
      ? { requestId, phase }
      : { atMs: random.between(0, spanMs + 30_000) };
    return { when, what };
  });
  const questions = Array.from({ length: random.between(1, 2) }, () =>
    usageQuestionOf(random, plan),
  );
  return { incidents, questions };
}
