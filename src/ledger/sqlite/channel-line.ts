import type { StoreClient } from "../store-operations.ts";
import {
  answerErrorToData,
  type FromWorker,
  type NumberedAnswer,
  type ToWorker,
} from "./thread-messages.ts";
import type { OpenStoreLine } from "./worker-client.ts";

/** To a process that has its ledger in another one: what that one's thread says, and that all its calls were answered. */
export type FromWriter = FromWorker | { readonly type: "closed" };

/** The way from a process to the one that has the file open. */
export interface WriterChannel {
  readonly send: (message: ToWorker) => void;
  /** Sets who gets what comes back. */
  readonly listen: (listener: (message: FromWriter) => void) => void;
}

/** The ledger's thread of another process, which is open already, and replaces its thread itself. */
export function openChannelLine({ listen, send }: WriterChannel): OpenStoreLine {
  return (listener) => {
    listen((message) => {
      if (message.type === "closed") listener.ended(null);
      else listener.message(message);
    });
    queueMicrotask(() => listener.message({ type: "open" }));
    return { send };
  };
}

/** Does the calls of another process over the store of this one. The answers of one tick travel as one message. */
export function relayCalls(
  client: StoreClient,
  send: (message: FromWriter) => void,
): (message: ToWorker) => void {
  const underWay = new Set<Promise<void>>();
  let answers: NumberedAnswer[] = [];

  function flush(): void {
    const message: FromWriter = { type: "answers", answers };
    answers = [];
    send(message);
  }

  function answer(one: NumberedAnswer): void {
    if (answers.length === 0) queueMicrotask(flush);
    answers.push(one);
  }

  return (message) => {
    if (message.type === "close") {
      void Promise.all(underWay).then(() => send({ type: "closed" }));
      return;
    }
    for (const { argument, id, name } of message.calls) {
      const done = client
        .call(name, argument)
        .then(
          (value) => answer({ id, value }),
          (error: unknown) => answer({ id, error: answerErrorToData(error) }),
        )
        .finally(() => underWay.delete(done));
      underWay.add(done);
    }
  };
}
