import { OperatorError, type OperatorErrorCode } from "../ledger/operator-error.ts";

// Both sides of a service of several processes ask and tell each other by name, over whatever carries values.

/** What one side can be asked. */
export type Calls = object;

type Argument<Call> = Call extends (argument: infer Given) => unknown ? Given : never;
type Answer<Call> = Call extends (argument: never) => infer Given ? Awaited<Given> : never;

/** What travels: plain values, with bigints and bytes. */
export type ChannelMessage =
  | { readonly type: "ask"; readonly id: number; readonly name: string; readonly argument: unknown }
  | { readonly type: "tell"; readonly name: string; readonly argument: unknown }
  | { readonly type: "answer"; readonly id: number; readonly value: unknown }
  | { readonly type: "failed"; readonly id: number; readonly error: ErrorData };

/** One side's way to the other. */
export interface Channel<Theirs extends Calls> {
  /** Rejects with the error of the other side, or with that of `close`. */
  ask<Name extends keyof Theirs & string>(
    name: Name,
    argument: Argument<Theirs[Name]>,
  ): Promise<Answer<Theirs[Name]>>;
  /** Nothing is heard of it. */
  tell<Name extends keyof Theirs & string>(name: Name, argument: Argument<Theirs[Name]>): void;
  receive(message: ChannelMessage): void;
  /** The other side is gone. */
  close(reason: Error): void;
}

/** Opens a channel: `mine` is what the other side may ask here. */
export function openChannel<Theirs extends Calls>(
  mine: Calls,
  send: (message: ChannelMessage) => void,
): Channel<Theirs> {
  const waiting = new Map<
    number,
    { readonly resolve: (value: never) => void; readonly reject: (error: Error) => void }
  >();
  let lastId = 0;
  let closed: Error | null = null;

  async function answer(id: number, name: string, argument: unknown): Promise<void> {
    try {
      send({ type: "answer", id, value: await call(name, argument) });
    } catch (error) {
      send({ type: "failed", id, error: errorToData(error) });
    }
  }

  function call(name: string, argument: unknown): unknown {
    // Both sides are of one version, and their types tie names to arguments.
    return (mine as Record<string, (argument: unknown) => unknown>)[name]?.(argument);
  }

  return {
    ask(name, argument) {
      if (closed !== null) return Promise.reject(closed);
      lastId += 1;
      const id = lastId;
      send({ type: "ask", id, name, argument });
      return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
    },
    tell(name, argument) {
      if (closed === null) send({ type: "tell", name, argument });
    },
    receive(message) {
      switch (message.type) {
        case "ask":
          void answer(message.id, message.name, message.argument);
          return;
        case "tell":
          call(message.name, message.argument);
          return;
        case "answer":
          waiting.get(message.id)?.resolve(message.value as never);
          waiting.delete(message.id);
          return;
        case "failed":
          waiting.get(message.id)?.reject(errorFromData(message.error));
          waiting.delete(message.id);
          return;
        default:
          message satisfies never;
      }
    },
    close(reason) {
      closed = reason;
      for (const { reject } of waiting.values()) reject(reason);
      waiting.clear();
    },
  };
}

/** Errors lose their class and their code on the way. */
interface ErrorData {
  readonly message: string;
  readonly stack: string | null;
  /** Of the system, such as `EADDRINUSE`. */
  readonly code: string | null;
  /** Of an OperatorError. */
  readonly operator: OperatorErrorCode | null;
}

function errorToData(error: unknown): ErrorData {
  const known = error instanceof Error ? error : new Error(String(error));
  return {
    message: known.message,
    stack: known.stack ?? null,
    code: "code" in known ? String(known.code) : null,
    operator: known instanceof OperatorError ? known.code : null,
  };
}

function errorFromData({ code, message, operator, stack }: ErrorData): Error {
  if (operator !== null) return new OperatorError(operator, message);
  const place = stack === null ? {} : { stack };
  return Object.assign(new Error(message), place, code === null ? {} : { code });
}
