import type { MessagesErrorType, OpenaiErrorCode, OpenaiErrorType } from "../failure.ts";

/** An error in the shape that Chat Completions and Responses share: a body, or a frame of a Chat Completions stream. */
export interface OpenaiErrorBody {
  readonly error: OpenaiError;
}

/** What went wrong, in the OpenAI shape. */
export type OpenaiError =
  | OpenaiErrorFields
  | (OpenaiErrorFields & ShortageFields)
  | (OpenaiErrorFields & ShortageFields & BudgetFields);

/** What every error of the OpenAI shape says. */
interface OpenaiErrorFields {
  readonly message: string;
  readonly type: OpenaiErrorType;
  /** The request field at fault. */
  readonly param: string | null;
  readonly code: OpenaiErrorCode;
  readonly request_id: string;
}

/** An error in the Messages shape: a body, or a frame of a Messages stream. */
export interface MessagesErrorBody {
  readonly type: "error";
  readonly error:
    | MessagesErrorFields
    | (MessagesErrorFields & ShortageFields)
    | (MessagesErrorFields & ShortageFields & BudgetFields);
  readonly request_id: string;
}

/** What every error of the Messages shape says. */
interface MessagesErrorFields {
  readonly type: MessagesErrorType;
  readonly message: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** Figures of a 402: amounts are decimal strings of credits. */
export interface ShortageFields {
  readonly balance: string;
  readonly held: string;
  readonly needed: string;
  readonly affordable_output_tokens: number;
  readonly waiting_helps: boolean;
}

/** Further figures where the budget of the key is in the way. */
export interface BudgetFields {
  readonly budget: string;
  readonly budget_left: string;
  /** RFC 3339; null: its period has no end. */
  readonly budget_ends_at: string | null;
}
