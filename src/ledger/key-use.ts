import { limits } from "../limits.ts";
import type { Caller } from "./ledger.ts";
import type { RunOperation } from "./store-operations.ts";

/** Notes which keys are used. */
export type NoteKeyUse = (caller: Pick<Caller, "accountId" | "keyId">) => void;

/**
 * Writes the minute in which a key was last used: once a minute and key, beside the requests and never waited for, since
 * what shows it shows minutes. What cannot be written is noted again with the next use.
 */
export function openKeyUse(run: RunOperation, nowMs: () => number): NoteKeyUse {
  let minute = -1;
  let noted = new Set<string>();
  return ({ accountId, keyId }) => {
    const atMs = nowMs();
    const atMinute = Math.floor(atMs / limits.keyUseMs);
    if (atMinute !== minute) {
      minute = atMinute;
      noted = new Set();
    }
    if (noted.has(keyId)) return;
    noted.add(keyId);
    const ofMinute = noted;
    run("noteKeyUse", { accountId, keyId, usedAtMs: atMinute * limits.keyUseMs }).catch(() => {
      ofMinute.delete(keyId);
    });
  };
}
