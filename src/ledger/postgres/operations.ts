import type { AnswerOf, ArgumentOf, OperationName } from "../operations.ts";

/** The operations of a store that is reached over a network. */
export type PostgresOperations = {
  readonly [Name in OperationName]: (argument: ArgumentOf<Name>) => Promise<AnswerOf<Name>>;
};

/** Milliseconds since 1970 for a simulation; null: the server's own clock. */
export type Clock = () => number | null;
