import { limits } from "../limits.ts";
import { systemTimers, type Timers } from "../timers.ts";
import type { LedgerAdministration } from "./ledger.ts";
import type { SealKeyRecord } from "./records.ts";

/** The keys that seal reasoning as this process knows them; a rotation reaches it within limits.sealRefreshMs. */
export interface SealRing extends Disposable {
  /** The last one seals, every one opens. */
  readonly keys: readonly SealKeyRecord[];
}

/** What the ring works with. */
export interface SealRingParts {
  readonly telemetry: {
    ledgerRetry(facts: { readonly operation: string; readonly cause: unknown }): void;
  };
  readonly timers?: Timers;
}

/** Reads the keys, and reads them again every `limits.sealRefreshMs` until it is disposed. */
export async function openSealRing(
  ledger: Pick<LedgerAdministration, "sealKeys">,
  { telemetry, timers = systemTimers }: SealRingParts,
): Promise<SealRing> {
  let keys = orderRing(await ledger.sealKeys());
  let closed = false;
  let timer: unknown = null;

  async function refresh(): Promise<void> {
    try {
      keys = orderRing(await ledger.sealKeys());
    } catch (cause) {
      // The keys read before go on sealing and opening.
      if (!closed) telemetry.ledgerRetry({ operation: "sealKeys", cause });
    }
    wait();
  }

  function wait(): void {
    if (!closed) timer = timers.set(() => void refresh(), limits.sealRefreshMs);
  }

  wait();
  return {
    get keys() {
      return keys;
    },
    [Symbol.dispose]() {
      closed = true;
      timers.clear(timer);
    },
  };
}

/**
 * A new key opens at once and seals only when every process has had the time to learn of it: what one replica has sealed
 * may come back to another in the next moment. An age below 0 is of a clock that was set back.
 */
function orderRing(keys: readonly SealKeyRecord[]): readonly SealKeyRecord[] {
  const current = keys.findLast(({ ageMs }) => Math.abs(ageMs) >= limits.sealKeyLearnMs) ?? keys[0];
  return current === undefined ? [] : [...keys.filter((key) => key !== current), current];
}
