import type { SealKeyRecord } from "../ledger/records.ts";
import { limits } from "../limits.ts";
import type { Command, CommandGroup } from "./command.ts";
import { withLedger } from "./open-ledger.ts";
import { formatTable } from "./text-table.ts";

const help = `The keys that seal reasoning, so that clients can send it back and cannot change or read it. The ledger keeps them.

  tributary seal rotate   make a new key; services that run seal with it after a minute, without a restart
  tributary seal list     the keys, oldest first, without their secrets

  --json   rotate prints {"id"}, list [{"id","age_seconds"}]

What older keys have sealed goes on opening: no session of a client ends. Rotate when a copy of the ledger may have come into
other hands: who has a key can make reasoning that the service takes for its own.
`;

const rotate: Command = {
  help,
  operands: [],
  options: {},
  run: (_line, shell) =>
    withLedger(shell, async (ledger) => {
      const { id } = await ledger.rotateSealKey();
      return {
        json: { id },
        text: `Made key ${id}. Services that run open what it seals within ${String(limits.sealRefreshMs / 1_000)} seconds, and seal with it after ${String(limits.sealKeyLearnMs / 1_000)}; older keys go on opening.\n`,
      };
    }),
};

const list: Command = {
  help,
  operands: [],
  options: {},
  run: (_line, shell) =>
    withLedger(shell, async (ledger) => {
      const keys = await ledger.sealKeys();
      return {
        json: keys.map((key) => ({ id: key.id, age_seconds: ageSeconds(key) })),
        text: formatTable([
          ["ID", "AGE"],
          ...keys.map((key) => [key.id, `${String(ageSeconds(key))} s`]),
        ]),
      };
    }),
};

/** `seal ...` */
export const sealCommands: CommandGroup = { help, actions: { rotate, list } };

function ageSeconds({ ageMs }: SealKeyRecord): number {
  return Math.round(ageMs / 1_000);
}
