import { Failure, failureFromData, failureToData, type FailureData } from "../../failure.ts";
import { limits } from "../../limits.ts";
import { OperatorError, type OperatorErrorCode } from "../operator-error.ts";
import { type FaultKind, type FaultReason, StoreFault } from "../store-fault.ts";
import { storeFault } from "./fault.ts";
import type { AnswerOf, OperationName, StoreAnswer, StoreCall } from "../store-operations.ts";

/**
 * To the ledger's thread: calls of one tick together, or the wish to end. `sentAtNs`: of `process.hrtime`, a clock that
 * never jumps and that all threads share.
 */
export type ToWorker =
  | { readonly type: "calls"; readonly calls: readonly NumberedCall[]; readonly sentAtNs: bigint }
  | { readonly type: "close" };

/** From the ledger's thread: the ledger is open, it could not be opened, or answers that have been committed. */
export type FromWorker =
  | { readonly type: "open" }
  | { readonly type: "unusable"; readonly error: AnswerError }
  | {
      readonly type: "answers";
      readonly answers: readonly NumberedAnswer[];
      /** How long they took together, where one commit that waits for the disk is behind them. */
      readonly commitMs?: number;
    };

/**
 * A call that was under way for long, since its process was stopped, gets the time of its arrival: by its old time the
 * tickets that other processes took since would look like tickets of a clock that was set back, and be forgotten.
 */
export function arrivedCall<Call extends StoreCall>(call: Call, underWayMs: number): Call {
  return underWayMs < limits.callStoodStillMs
    ? call
    : { ...call, nowMs: call.nowMs + Math.round(underWayMs) };
}

/** A call, and the number that its answer will carry. */
export interface NumberedCall extends StoreCall {
  readonly id: number;
}

/** An answer as plain data. */
export type NumberedAnswer =
  | { readonly id: number; readonly value: AnswerOf<OperationName> }
  | { readonly id: number; readonly error: AnswerError };

/** Errors lose their class between threads, so each kind travels as data. */
export type AnswerError =
  | { readonly type: "failure"; readonly failure: FailureData }
  | {
      readonly type: "operator";
      readonly code: OperatorErrorCode;
      readonly message: string;
      readonly param: string | null;
    }
  | { readonly type: "fault"; readonly fault: FaultData };

/** A fault as plain data: what SQLite said, and where in the other thread. */
interface FaultData {
  readonly kind: FaultKind;
  readonly reason: FaultReason | null;
  readonly code: string | null;
  readonly message: string;
  readonly stack: string | null;
  /** Of a bug: the error's class. */
  readonly bug: string | null;
}

/** An answer, ready to travel. */
export function answerToData(id: number, answer: StoreAnswer): NumberedAnswer {
  return answer.ok ? { id, value: answer.value } : { id, error: answerErrorToData(answer.error) };
}

/** An error, ready to travel. */
export function answerErrorToData(error: unknown): AnswerError {
  if (error instanceof Failure) return { type: "failure", failure: failureToData(error) };
  if (error instanceof OperatorError)
    return { type: "operator", code: error.code, message: error.message, param: error.param };
  const { cause, code, kind, message, reason, stack } = storeFault(error);
  const bug = cause instanceof Error ? cause : null;
  return {
    type: "fault",
    fault: {
      kind,
      reason,
      code,
      message,
      stack: bug?.stack ?? stack ?? null,
      bug: bug?.name ?? null,
    },
  };
}

/** The error that data describes. */
export function answerErrorFromData(data: AnswerError): Failure | OperatorError | StoreFault {
  switch (data.type) {
    case "failure":
      return failureFromData(data.failure);
    case "operator":
      return new OperatorError(data.code, data.message, { param: data.param });
    case "fault":
      return faultFromData(data.fault);
    default:
      return data satisfies never;
  }
}

function faultFromData({ bug, code, kind, message, reason, stack }: FaultData): StoreFault {
  const place = stack === null ? {} : { stack };
  if (bug !== null) {
    const cause = Object.assign(new Error(message), place, { name: bug });
    return new StoreFault(kind, message, { reason, code, cause });
  }
  return Object.assign(new StoreFault(kind, message, { reason, code }), place);
}
