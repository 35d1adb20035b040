import { Worker } from "node:worker_threads";
import { entryUrl } from "../../worker-url.ts";
import { OperatorError, type OperatorErrorCode } from "../operator-error.ts";
import { type FaultKind, type FaultReason, StoreFault } from "../store-fault.ts";
import type { ArgumentOf, PostgresOperations } from "../store-operations.ts";
import type { DatabaseSettings } from "./database.ts";

/** A report that the thread is to make. */
export interface ReportOrder {
  readonly id: number;
  readonly argument: ArgumentOf<"printUsage">;
}

/** Its text, or why there is none. */
export type ReportAnswer =
  | { readonly id: number; readonly value: Awaited<ReturnType<PostgresOperations["printUsage"]>> }
  | { readonly id: number; readonly error: ReportError };

/** An error as plain data, since errors lose their class between threads. */
export type ReportError =
  | {
      readonly type: "operator";
      readonly code: OperatorErrorCode;
      readonly message: string;
      readonly param: string | null;
    }
  | {
      readonly type: "fault";
      readonly kind: FaultKind;
      readonly code: string | null;
      readonly message: string;
      readonly reason: FaultReason | null;
    };

interface Waiting {
  readonly resolve: (value: Extract<ReportAnswer, { readonly value: unknown }>["value"]) => void;
  readonly reject: (error: Error) => void;
}

/** Reports in a thread of their own, which starts with the first of them. */
export function openThreadedReports(
  settings: DatabaseSettings,
): Pick<PostgresOperations, "printUsage"> & AsyncDisposable {
  const waiting = new Map<number, Waiting>();
  let lastId = 0;
  let worker: Worker | null = null;

  function start(): Worker {
    const { busyMs, pooling, url } = settings;
    const started = new Worker(entryUrl("report-thread", import.meta.url), {
      workerData: { url, ...(busyMs === undefined ? {} : { busyMs }), pooling },
      name: "reports",
    });
    started.on("message", (answer: ReportAnswer) => {
      const one = waiting.get(answer.id);
      waiting.delete(answer.id);
      if ("error" in answer) one?.reject(errorOf(answer.error));
      else one?.resolve(answer.value);
      // A thread that has nothing to do keeps no process from ending.
      if (waiting.size === 0) started.unref();
    });
    started.on("error", (cause) => end(started, cause));
    started.on("exit", () => end(started, null));
    return started;
  }

  function end(ended: Worker, cause: unknown): void {
    if (worker !== ended) return;
    worker = null;
    const fault = new StoreFault("unavailable", "the thread of reports has ended", {
      reason: "thread-ended",
      cause,
    });
    for (const { reject } of waiting.values()) reject(fault);
    waiting.clear();
  }

  return {
    printUsage(argument) {
      worker ??= start();
      worker.ref();
      lastId += 1;
      const { promise, reject, resolve } =
        Promise.withResolvers<Parameters<Waiting["resolve"]>[0]>();
      waiting.set(lastId, { resolve, reject });
      worker.postMessage({ id: lastId, argument } satisfies ReportOrder, []);
      return promise;
    },
    async [Symbol.asyncDispose]() {
      await worker?.terminate();
    },
  };
}

function errorOf(data: ReportError): Error {
  if (data.type === "operator")
    return new OperatorError(data.code, data.message, { param: data.param });
  return new StoreFault(data.kind, data.message, { reason: data.reason, code: data.code });
}
