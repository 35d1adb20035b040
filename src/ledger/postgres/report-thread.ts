import { parentPort, workerData } from "node:worker_threads";
import { OperatorError } from "../operator-error.ts";
import { StoreFault } from "../store-fault.ts";
import { yieldToStreams } from "../../yield-to-streams.ts";
import { openAdministration } from "./administration.ts";
import { type DatabaseSettings, openDatabase } from "./database.ts";
import { storeFault } from "./fault.ts";
import type { ReportAnswer, ReportError, ReportOrder } from "./threaded-reports.ts";

// The thread that reads reports which are many rows: they become text here, and the event loop passes bytes on.

yieldToStreams();
// `openThreadedReports` gave it.
const settings = workerData as DatabaseSettings;
const database = openDatabase({ ...settings, connections: 1 });
const { printUsage } = openAdministration(database, () => null);

parentPort?.on("message", ({ argument, id }: ReportOrder) => {
  printUsage(argument).then(
    (value) => send({ id, value }),
    (error: unknown) => send({ id, error: errorToData(error) }),
  );
});

function send(answer: ReportAnswer): void {
  parentPort?.postMessage(answer, "value" in answer ? transfersOf(answer.value) : []);
}

function transfersOf(value: Awaited<ReturnType<typeof printUsage>>): ArrayBuffer[] {
  return typeof value === "string" ? [] : [value.text.buffer];
}

function errorToData(error: unknown): ReportError {
  const { message } = error instanceof Error ? error : new Error(String(error));
  if (error instanceof OperatorError)
    return { type: "operator", code: error.code, message, param: error.param };
  const { code, kind, reason } = error instanceof StoreFault ? error : storeFault(error);
  return { type: "fault", kind, code, message, reason };
}
