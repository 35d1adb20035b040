import { Failure } from "../failure.ts";
import { limits } from "../limits.ts";

/** What one account may have under way in this process, and all accounts together, beside what the ledger bounds. */
export interface AccountBounds {
  /** Takes one of the account's places until it is disposed. Throws `too_many_concurrent`. */
  enter(account: BoundAccount): AccountEntry;
}

/** An account, and how many of its requests may run at once by what the ledger said of this request. */
export interface BoundAccount {
  readonly accountId: string;
  readonly concurrentRequests: number;
}

/** One request of an account, from its authorization until its response is over. */
export interface AccountEntry extends Disposable {
  /** The body that is announced, before a byte of it has come; in bytes. Throws `too_many_concurrent`. */
  expect(bytes: number): void;
  /** So many bytes more are held in memory. Throws `too_many_concurrent`, or `overloaded` where the process has too many. */
  hold(bytes: number): void;
  /** The body is held no longer: its request was refused, or admitted. */
  release(): void;
}

/** What an account has under way. */
interface AccountShare {
  requests: number;
  bytes: number;
}

/**
 * Opens the bounds. Announced bytes count for their own account only: for the process they would let a few accounts take
 * the whole budget without sending anything.
 */
export function openAccountBounds(): AccountBounds {
  const shares = new Map<string, AccountShare>();
  let processBytes = 0;

  function enter({ accountId, concurrentRequests }: BoundAccount): AccountEntry {
    const requestsMax = Math.max(
      limits.accountRequestsMin,
      limits.accountRequestsPerSlot * concurrentRequests,
    );
    const share = shares.get(accountId) ?? { requests: 0, bytes: 0 };
    if (share.requests >= requestsMax) throw tooManyRequests(requestsMax);
    shares.set(accountId, share);
    share.requests += 1;
    let held = 0;
    let counted = 0;
    let open = true;

    /** What counts for the account is the larger of what was announced and what is held. */
    function count(bytes: number): void {
      const more = Math.max(bytes - counted, 0);
      if (share.bytes + more > limits.accountBodyBytesMax) throw tooManyBytes();
      share.bytes += more;
      counted += more;
    }

    function release(): void {
      share.bytes -= counted;
      processBytes -= held;
      counted = 0;
      held = 0;
    }

    return {
      expect: count,
      hold(bytes) {
        if (!open) return;
        if (processBytes + bytes > limits.bodiesBytesMax) throw full();
        count(held + bytes);
        held += bytes;
        processBytes += bytes;
      },
      release,
      [Symbol.dispose]() {
        if (!open) return;
        open = false;
        release();
        share.requests -= 1;
        if (share.requests === 0) shares.delete(accountId);
      },
    };
  }

  return { enter };
}

function tooManyRequests(max: number): Failure {
  return new Failure(
    "too_many_concurrent",
    `This account has ${String(max)} requests under way already, which is as many as it may at once; those still being sent and those whose answers are still being read count too. Wait until one has ended.`,
    { retryAfterSeconds: retrySeconds },
  );
}

function tooManyBytes(): Failure {
  const mebibytes = String(limits.accountBodyBytesMax / 1024 / 1024);
  return new Failure(
    "too_many_concurrent",
    `The bodies that this account is sending at once are larger than ${mebibytes} MiB together, which is as much as they may be. Wait until one has been taken.`,
    { retryAfterSeconds: retrySeconds },
  );
}

function full(): Failure {
  return new Failure(
    "overloaded",
    "The service is receiving as many large requests as it can hold. Try again in a moment.",
    { retryAfterSeconds: retrySeconds },
  );
}

// A body is received and prepared within a second or two, mostly.
const retrySeconds = 2;
