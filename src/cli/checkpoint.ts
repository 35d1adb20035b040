import { CommandError, type Outcome, type Shell } from "./command.ts";
import { counted } from "./counted.ts";
import { withLedger } from "./open-ledger.ts";
import { readTime } from "./read-time.ts";

interface CheckpointOptions {
  readonly before: string;
  readonly account?: string | undefined;
}

/** `checkpoint` */
export async function addCheckpoints(
  shell: Shell,
  { account, before }: CheckpointOptions,
): Promise<Outcome> {
  const beforeMs = readTime(before, "--before", Date.now());
  return withLedger(shell, async (ledger) => {
    const { ok, problemsTotal } = await ledger.verify([]);
    if (!ok)
      throw new CommandError(
        "not_possible",
        1,
        `The ledger has ${counted(problemsTotal, "problem", "problems")}, so nothing was rolled up. See: ${shell.programName} verify`,
      );
    const ids =
      account === undefined ? (await ledger.listAccounts()).map(({ id }) => id) : [account];
    let accounts = 0;
    let removed = 0;
    let misdated = 0;
    for (const id of ids) {
      const done = await ledger.checkpoint(id, beforeMs);
      removed += done.removed;
      misdated += done.misdated;
      if (done.removed > 0) accounts += 1;
    }
    return {
      json: { accounts, removed, misdated },
      text: `Rolled up: ${counted(removed, "entry", "entries")} of ${counted(accounts, "account", "accounts")}.\n${warning(misdated)}`,
    };
  });
}

function warning(misdated: number): string {
  return misdated === 0
    ? ""
    : `Warning: ${counted(misdated, "entry bears", "entries bear")} a later time than that. A clock was ahead when they were written; older entries follow them, so they were rolled up too.\n`;
}
