import { limits } from "../limits.ts";
import type { Caller } from "./ledger.ts";
import type { KeyUse, RunOperation } from "./store-operations.ts";

/** Notes which keys are used, and writes it when the ledger is written anyway. */
export interface KeyUses {
  note(caller: Pick<Caller, "accountId" | "keyId">): void;
  /** Writes what was noted since the last time; never waited for. */
  write(): void;
}

/**
 * The minute in which a key was last used: one write a minute and key, and none in front of a request. A look at an
 * account writes nothing else, so it would wait with it for whoever has locked the file. What cannot be written is noted
 * again.
 */
export function openKeyUses(run: RunOperation, nowMs: () => number): KeyUses {
  let minute = -1;
  let noted = new Set<string>();
  let unwritten = new Map<string, KeyUse>();
  return {
    note({ accountId, keyId }) {
      const atMinute = Math.floor(nowMs() / limits.keyUseMs);
      if (atMinute !== minute) {
        minute = atMinute;
        noted = new Set();
      }
      if (noted.has(keyId)) return;
      noted.add(keyId);
      unwritten.set(keyId, { accountId, keyId, usedAtMs: atMinute * limits.keyUseMs });
    },
    write() {
      const uses = unwritten;
      unwritten = new Map();
      for (const [keyId, use] of uses)
        run("noteKeyUse", use).catch(() => {
          if (!unwritten.has(keyId)) unwritten.set(keyId, use);
        });
    },
  };
}
