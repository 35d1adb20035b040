import { it } from "vitest";
import { type Capability, lackTitle, type Particular } from "./capabilities.ts";
import type { ClientKind } from "./client.ts";

/** Shows in the tests' report, and so in the table, what a client does not have; whether it does not. */
export function noteLack(kind: ClientKind, name: Capability | Particular): boolean {
  const reason = kind.lacks[name];
  if (reason === undefined) return false;
  it.skip(lackTitle(name, reason), () => undefined);
  return true;
}
