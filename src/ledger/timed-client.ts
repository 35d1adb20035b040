import type { StoreClient } from "./store-operations.ts";

/** What hears of the calls of a store. */
export interface CallWatch {
  /** A question of a request was answered, with a failure or without. */
  ledgerAnswered(step: RequestStep, ms: number): void;
}

/** What a request asks the ledger. */
export type RequestStep = "authorize" | "admit" | "settle";

/** A store that knows how many of its calls wait. */
export interface TimedClient extends StoreClient {
  readonly waiting: number;
}

/** The same store; each call pays for two readings of the clock and a reaction, and waits for nothing. */
export function timeCalls(
  client: StoreClient,
  watch: Partial<CallWatch>,
  monotonicMs: () => number,
): TimedClient {
  let waiting = 0;
  return {
    get waiting() {
      return waiting;
    },
    call(name, argument) {
      const beganMs = monotonicMs();
      waiting += 1;
      const answered = (): void => {
        waiting -= 1;
        if (name === "authorize" || name === "admit" || name === "settle")
          watch.ledgerAnswered?.(name, monotonicMs() - beganMs);
      };
      const answer = client.call(name, argument);
      answer.then(answered, answered);
      return answer;
    },
    [Symbol.asyncDispose]: () => client[Symbol.asyncDispose](),
  };
}
