import { OperatorError } from "../operator-error.ts";

/** The part of a migration that says who may still open the ledger after it. */
export interface Readable {
  /**
   * The lowest schema number whose programs may still open what this step leaves: its own where it takes away or changes
   * what they read. Expand first: add what the new version needs so that the versions before go on, and take away what
   * nothing reads any more a version later.
   */
  readonly oldest: number;
}

/** The lowest schema number whose programs may open a ledger that has been through all these steps. */
export function oldestReader(migrations: readonly Readable[]): number {
  return Math.max(...migrations.map(({ oldest }) => oldest));
}

/** What a start says where the ledger `name` has schema `version` and no longer suits programs that know `known`. */
export function newerSchema(name: string, version: number, known: number): OperatorError {
  return new OperatorError(
    "ledger_unusable",
    `${name} was written by a newer version of Tributary (schema ${String(version)}, this one knows ${String(known)}). Start that version, or a newer one.`,
  );
}
