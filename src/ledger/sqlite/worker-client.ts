import { limits } from "../../limits.ts";
import {
  answerErrorFromData,
  type FromWorker,
  type NumberedCall,
  type ToWorker,
} from "./thread-messages.ts";
import type { OperationName, StoreClient, StoreGroup } from "../store-operations.ts";
import { StoreFault } from "../store-fault.ts";

/** What carries calls to a store that is open elsewhere, from its start to its end. */
export interface StoreLine {
  send(message: ToWorker): void;
}

/** What is called for a line: `ended` last, with what ended it; null: nothing that is known. */
export interface StoreLineListener {
  readonly message: (message: FromWorker) => void;
  readonly ended: (cause: unknown) => void;
}

/** Starts a line. Nothing is called before this has returned. */
export type OpenStoreLine = (listener: StoreLineListener) => StoreLine;

/** What the client of a store works with. */
export interface StoreClientParts {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds of a clock that never jumps. */
  readonly monotonicMs?: () => number;
  readonly onGroup?: (group: StoreGroup) => void;
}

interface Pending {
  readonly resolve: (value: never) => void;
  readonly reject: (error: Error) => void;
}

/** An open line with the calls that wait for their answers. */
interface Connection {
  readonly line: StoreLine;
  readonly pending: Map<number, Pending>;
  readonly ended: Promise<void>;
}

/** Opens a line and waits until the ledger is open; where it ends, the next call opens another. */
export async function connectStore(
  openLine: OpenStoreLine,
  { monotonicMs = () => performance.now(), now, onGroup }: StoreClientParts,
): Promise<StoreClient> {
  let lastId = 0;
  let closed = false;
  let unsent: NumberedCall[] = [];
  let connection: Connection | null = null;
  let waitingForLine = 0;
  const reopen = openReopening(() => connect(openLine, { forget, onGroup }), monotonicMs);
  connection = await connect(openLine, { forget, onGroup });

  function forget(ended: StoreLine): void {
    // What is unsent is rejected with what was sent, and must not reach the next line.
    if (connection?.line === ended) [connection, unsent] = [null, []];
  }

  function flush(): void {
    const calls = unsent;
    unsent = [];
    if (calls.length === 0) return;
    const message: ToWorker = { type: "calls", calls, sentAtNs: process.hrtime.bigint() };
    connection?.line.send(message);
  }

  async function postToNextLine(name: OperationName, argument: unknown): Promise<never> {
    if (waitingForLine >= limits.ledgerWaitingMax) throw tooMany();
    waitingForLine += 1;
    try {
      connection = await reopen.next();
    } finally {
      waitingForLine -= 1;
    }
    return post(name, argument, connection);
  }

  function post(name: OperationName, argument: unknown, to: Connection): Promise<never> {
    if (to.pending.size >= limits.ledgerWaitingMax) return Promise.reject(tooMany());
    lastId += 1;
    const id = lastId;
    // What all sockets of one poll have asked for travels as one message: each wakes two threads.
    if (unsent.length === 0) setImmediate(flush);
    unsent.push({ id, name, argument: argument as NumberedCall["argument"], nowMs: now() });
    return new Promise((resolve, reject) => {
      to.pending.set(id, { resolve, reject });
    });
  }

  return {
    call(name, argument) {
      if (closed)
        return Promise.reject(
          new StoreFault("unavailable", "the ledger has been closed", { reason: "closed" }),
        );
      return connection === null
        ? postToNextLine(name, argument)
        : post(name, argument, connection);
    },
    async [Symbol.asyncDispose]() {
      closed = true;
      // A thread that is still opening the file keeps the process from ending, too.
      const ending = connection ?? (await reopen.underWay());
      if (ending === null) return;
      // `close` has to come after the calls that `flush` has yet to send.
      flush();
      ending.line.send({ type: "close" });
      await ending.ended;
    },
  };
}

interface Reopening {
  /** The next connection, the same one for all who ask; rejects with a StoreFault. */
  next(): Promise<Connection>;
  /** The connection that is being opened; null: none is, or the ledger could not be opened. */
  underWay(): Promise<Connection | null>;
}

/** Starts one thread at a time, after twice the wait each time while threads end soon: a start reads and locks the file. */
function openReopening(start: () => Promise<Connection>, monotonicMs: () => number): Reopening {
  let opening: Promise<Connection> | null = null;
  let reason: unknown = null;
  let startedAtMs = monotonicMs();
  let delayMs: number = limits.ledgerRestartFirstMs;

  async function open(): Promise<Connection> {
    try {
      return await start();
    } catch (error) {
      reason = error;
      throw asFault(error);
    } finally {
      opening = null;
    }
  }

  return {
    next() {
      if (opening !== null) return opening;
      const livedMs = monotonicMs() - startedAtMs;
      if (livedMs < delayMs) return Promise.reject(asFault(reason));
      const calm = livedMs >= 2 * limits.ledgerRestartLongestMs;
      delayMs = calm
        ? limits.ledgerRestartFirstMs
        : Math.min(delayMs * 2, limits.ledgerRestartLongestMs);
      startedAtMs = monotonicMs();
      opening = open();
      return opening;
    },
    underWay: () => opening?.catch(() => null) ?? Promise.resolve(null),
  };
}

/** The fault of calls whose thread has ended, also where its file cannot be opened again: settlements are tried again. */
function asFault(error: unknown): StoreFault {
  if (error instanceof StoreFault) return error;
  const words = error instanceof Error ? `: ${error.message}` : " and is being replaced";
  return new StoreFault("unavailable", `the ledger's thread has ended${words}`, {
    reason: "thread-ended",
    ...(error instanceof Error ? { cause: error } : {}),
  });
}

function tooMany(): StoreFault {
  return new StoreFault("busy", "too many operations wait for the ledger", {
    reason: "overloaded",
  });
}

async function connect(
  openLine: OpenStoreLine,
  {
    forget,
    onGroup,
  }: {
    readonly forget: (ended: StoreLine) => void;
    readonly onGroup: StoreClientParts["onGroup"];
  },
): Promise<Connection> {
  const pending = new Map<number, Pending>();
  const opened = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const line = openLine({
    message(message) {
      switch (message.type) {
        case "open":
          opened.resolve();
          return;
        case "unusable":
          opened.reject(answerErrorFromData(message.error));
          return;
        case "answers":
          for (const answer of message.answers) {
            const waiting = pending.get(answer.id);
            pending.delete(answer.id);
            if ("error" in answer) waiting?.reject(answerErrorFromData(answer.error));
            // The id names the call, and with it the type of its answer.
            else waiting?.resolve(answer.value as never);
          }
          if (message.commitMs !== undefined)
            onGroup?.({ calls: message.answers.length, ms: message.commitMs });
          return;
        default:
          message satisfies never;
      }
    },
    ended(cause) {
      // Before the pending calls reject: the next call must not go to this line.
      forget(line);
      for (const { reject } of pending.values()) reject(asFault(cause));
      pending.clear();
      opened.reject(asFault(cause));
      ended.resolve();
    },
  });
  await opened.promise;
  return { line, pending, ended: ended.promise };
}
