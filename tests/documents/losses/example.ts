import type { Fate, Losses } from "./tables/format-losses.ts";
import type { JsonRecord } from "../../cases/files.ts";

/** Fields that are put into the plain body of a format. */
interface Sent {
  readonly send: JsonRecord;
}

/** An answer, as a predicate needs it. */
export interface AnswerSeen {
  readonly type: string;
  readonly text: string;
}

interface ExampleOf {
  /** `arrives`: members that the deployment's body then has, to the letter; null: it has none of the name. */
  readonly carried: Sent & { readonly arrives: JsonRecord };
  readonly converted: Sent & { readonly arrives: JsonRecord };
  /** `shows`: true of the answer with the field, false without. */
  readonly served: Sent & { readonly shows: (answer: AnswerSeen) => boolean };
  readonly ignored: Sent;
  readonly refused: Sent & { readonly param: string };
}

/** What a test sends for a row of a table, and what must come of it. */
export type Example<Is extends Fate = Fate> = ExampleOf[Is];

/** Examples of every row of a format's table: a row without them does not compile. */
export type Examples<Table extends Losses> = {
  readonly [Topic in keyof Table]: readonly Example<Table[Topic]["fate"]>[];
};

/** Reasoning that the running service sealed for the caller, as each format has it. */
export interface SealedReasoning {
  readonly text: string;
  readonly encryptedContent: string;
  readonly signature: string;
}
