import { receiveMessageOnPort, type MessagePort } from "node:worker_threads";
import { limits } from "../../limits.ts";
import {
  answerErrorToData,
  answerToData,
  arrivedCall,
  type FromWorker,
  type NumberedAnswer,
  type NumberedCall,
  type ToWorker,
} from "./thread-messages.ts";
import { yieldToStreams } from "../../yield-to-streams.ts";
import { isLight, openStore, type SqliteStore, type StoreSettings } from "./store.ts";

// Group commit: whatever has queued up while the last commit waited for the disk goes into the next one, so that a slow
// disk makes larger groups instead of a longer queue.

/** What the thread does that owns the ledger's file: the calls that come to a port, until one closes it. */
export function serveStore(port: MessagePort, settings: StoreSettings): void {
  const send = (message: FromWorker): void => {
    port.postMessage(message, settings.yields === true ? transfersOf(message) : []);
  };
  if (settings.yields === true) yieldToStreams();
  let store: SqliteStore;
  try {
    store = openStore(settings);
  } catch (error) {
    send({ type: "unusable", error: answerErrorToData(error) });
    return;
  }
  port.on("message", (first: ToWorker) => {
    const calls: NumberedCall[] = [];
    const closing = drain(port, first, calls);
    // The commit of light calls needs no sync, so that no light call waits for one.
    const light = calls.filter((call) => isLight(call));
    for (const answers of commit(store, light)) send({ type: "answers", answers });
    let beganMs = performance.now();
    for (const answers of commit(
      store,
      calls.filter((call) => !isLight(call)),
    )) {
      const endedMs = performance.now();
      send({ type: "answers", answers, commitMs: endedMs - beganMs });
      beganMs = endedMs;
    }
    if (!closing) return;
    store[Symbol.dispose]();
    port.close();
  });
  send({ type: "open" });
}

/** Texts of reports, which are not copied. */
function transfersOf(message: FromWorker): ArrayBuffer[] {
  if (message.type !== "answers") return [];
  return message.answers.flatMap((answer) => {
    if (!("value" in answer) || typeof answer.value !== "object" || answer.value === null)
      return [];
    return "text" in answer.value && answer.value.text instanceof Uint8Array
      ? [answer.value.text.buffer]
      : [];
  });
}

/** Takes every call that waits on the port, in order; returns whether `close` was among the messages. */
function drain(port: MessagePort, first: ToWorker, calls: NumberedCall[]): boolean {
  let message: ToWorker | undefined = first;
  while (message !== undefined) {
    if (message.type === "close") return true;
    const underWayMs = Number(process.hrtime.bigint() - message.sentAtNs) / 1e6;
    calls.push(...message.calls.map((call) => arrivedCall(call, underWayMs)));
    const next: { message: ToWorker } | undefined = receiveMessageOnPort(port);
    message = next?.message;
  }
  return false;
}

function* commit(
  store: SqliteStore,
  calls: readonly NumberedCall[],
): Generator<readonly NumberedAnswer[]> {
  for (let from = 0; from < calls.length; from += limits.ledgerGroupMax) {
    const group = calls.slice(from, from + limits.ledgerGroupMax);
    const ids = group.map((call) => call.id);
    // Given after the commit: an answer that leaves this thread is on the disk.
    yield store.execute(group).map((answer, index) => answerToData(ids[index] ?? -1, answer));
  }
}
