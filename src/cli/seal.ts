import type { SealKeyRecord } from "../ledger/records.ts";
import { limits } from "../limits.ts";
import type { Outcome, Shell } from "./command.ts";
import { withLedger } from "./open-ledger.ts";
import { formatTable } from "./text-table.ts";

/** `seal rotate` */
export function rotateSealKey(shell: Shell): Promise<Outcome> {
  return withLedger(shell, async (ledger) => {
    const { id } = await ledger.rotateSealKey();
    return {
      json: { id },
      text: `Made key ${id}. Services that run open what it seals within ${String(limits.sealRefreshMs / 1_000)} seconds, and seal with it after ${String(limits.sealKeyLearnMs / 1_000)}; older keys go on opening.\n`,
    };
  });
}

/** `seal list` */
export function listSealKeys(shell: Shell): Promise<Outcome> {
  return withLedger(shell, async (ledger) => {
    const keys = await ledger.sealKeys();
    return {
      json: keys.map((key) => ({ id: key.id, age_seconds: ageSeconds(key) })),
      text: formatTable([
        ["ID", "AGE"],
        ...keys.map((key) => [key.id, `${String(ageSeconds(key))} s`]),
      ]),
    };
  });
}

function ageSeconds({ ageMs }: SealKeyRecord): number {
  return Math.round(ageMs / 1_000);
}
