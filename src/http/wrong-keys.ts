import { Failure } from "../failure.ts";
import type { Caller } from "../ledger/ledger.ts";
import { unknownKey } from "../ledger/refusals.ts";
import { limits } from "../limits.ts";
import { networkOf } from "../network/client-address.ts";
import type { Telemetry } from "../telemetry/events.ts";
import type { Timers } from "../timers.ts";

/** A key as it came, and from where. */
export interface PresentedBy {
  readonly key: string;
  readonly address: string;
}

/** Bounds what wrong keys cost, by the address that they come from. Disposing it tells what it still knows. */
export interface WrongKeys extends Disposable {
  /**
   * Asks who the bearer of a key is. A wrong one beyond `limits.wrongKeysMax` of its address is answered 429, and keys that are
   * not known from there are asked for one after another: a right one has its answer in any case.
   */
  guard(by: PresentedBy, ask: () => Promise<Caller>): Promise<Caller>;
}

interface Tries {
  count: number;
  readonly sinceMs: number;
  /** The last of those that wait for each other. */
  turn: Promise<unknown>;
}

/** Opens it for the requests of one process. */
export function openWrongKeys(parts: {
  readonly timers: Timers;
  readonly monotonicMs: () => number;
  /** Hears at most once a minute what came. */
  readonly telemetry: Pick<Telemetry, "lifecycle">;
}): WrongKeys {
  const tries = openTries(parts.monotonicMs);
  const sums = openSums(parts);
  /** Ids of keys that were right although their address sent wrong ones. */
  const right = new Set<string>();

  async function askOnce(by: PresentedBy, ask: () => Promise<Caller>): Promise<Caller> {
    try {
      return await ask();
    } catch (error) {
      const isWrong = error instanceof Failure && error.code === "authentication";
      if (!isWrong || by.key === "") throw error;
      right.delete(keyIdOf(by.key));
      const network = networkOf(by.address);
      const count = tries.add(network);
      if (count <= limits.wrongKeysMax) throw error;
      sums.add(network);
      throw tooManyWrongKeys(error);
    }
  }

  async function askInTurn(
    known: Tries,
    by: PresentedBy,
    ask: () => Promise<Caller>,
  ): Promise<Caller> {
    const asked = known.turn.then(() => askOnce(by, ask));
    known.turn = asked.catch(() => undefined);
    const caller = await asked;
    if (right.size >= limits.wrongKeysAddressesMax) right.clear();
    right.add(caller.keyId);
    return caller;
  }

  return {
    guard(by, ask) {
      const known = tries.find(by.address);
      if (known === null || by.key === "" || right.has(keyIdOf(by.key))) return askOnce(by, ask);
      return askInTurn(known, by, ask);
    },
    [Symbol.dispose]: sums.end,
  };
}

/** Wrong keys by address: of so many at most; where more come, those that sent none for longest are forgotten. */
function openTries(monotonicMs: () => number) {
  const tries = new Map<string, Tries>();
  function find(network: string): Tries | null {
    const known = tries.get(network);
    const isOver = known === undefined || monotonicMs() - known.sinceMs >= limits.wrongKeysWindowMs;
    return isOver ? null : known;
  }
  return {
    /** null: the address has not sent as many as it may. */
    find(address: string): Tries | null {
      const known = tries.size === 0 ? null : find(networkOf(address));
      return known === null || known.count < limits.wrongKeysMax ? null : known;
    },
    /** Returns how many there are with this one. */
    add(network: string): number {
      const sinceMs = monotonicMs();
      const known = find(network) ?? { count: 0, sinceMs, turn: Promise.resolve() };
      known.count += 1;
      tries.delete(network);
      tries.set(network, known);
      const [oldest] = tries.keys();
      if (tries.size > limits.wrongKeysAddressesMax && oldest !== undefined) tries.delete(oldest);
      return known.count;
    },
  };
}

/** The id of the key that a text claims to be. */
function keyIdOf(key: string): string {
  return `key_${key.split("_", 3)[2] ?? ""}`;
}

function tooManyWrongKeys(cause: Failure): Failure {
  return new Failure(
    "too_many_wrong_keys",
    `${unknownKey().message} Too many wrong keys came from this address within a minute; a right one is served all the same.`,
    { cause },
  );
}

/** Adds up what came for a minute from the first of it on. */
function openSums({
  telemetry,
  timers,
}: {
  readonly telemetry: Pick<Telemetry, "lifecycle">;
  readonly timers: Timers;
}): { readonly add: (network: string) => void; readonly end: () => void } {
  const counts = new Map<string, number>();
  let count = 0;
  let timer: unknown;
  function end(): void {
    timers.clear(timer);
    if (count === 0) return;
    const [client = "", clientCount = 0] =
      [...counts].toSorted(([, one], [, other]) => other - one)[0] ?? [];
    telemetry.lifecycle("wrong keys", { count, addresses: counts.size, client, clientCount });
    counts.clear();
    count = 0;
  }
  return {
    end,
    add(network) {
      if (count === 0) timer = timers.set(end, limits.wrongKeysWindowMs);
      count += 1;
      if (counts.has(network) || counts.size < limits.wrongKeysAddressesMax)
        counts.set(network, (counts.get(network) ?? 0) + 1);
    },
  };
}
