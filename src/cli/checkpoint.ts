import { type Command, CommandError, misuse } from "./command.ts";
import { counted } from "./counted.ts";
import { withLedger } from "./open-ledger.ts";
import { readTime } from "./read-time.ts";

const help = `Replaces old entries of the journal by what they add up to. Receipts and usage stay; the chain confirms the sum, and
\`tributary verify\` starts from it. Verifies the ledger first, and changes nothing when that finds a problem.

  tributary checkpoint --before T [--account ID]

  --before T     entries written before T: 2026-01-31, 2026-01-31T12:00:00Z, or 90d for what is older than 90 days
  --account ID   one account; all of them without it
  --json         print {"accounts","removed","misdated"}

Heads that were kept of removed entries cannot be verified against any more: keep newer ones first
(\`tributary verify --save-heads FILE\`).
`;

/** `checkpoint` */
export const checkpointCommand: Command = {
  help,
  operands: [],
  options: { before: { type: "string" }, account: { type: "string" } },
  run: (line, shell) => {
    const { account, before } = line.texts;
    if (before === undefined)
      throw misuse(
        `checkpoint needs --before T, such as --before 90d. See: ${shell.programName} checkpoint --help`,
      );
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
  },
};

function warning(misdated: number): string {
  return misdated === 0
    ? ""
    : `Warning: ${counted(misdated, "entry bears", "entries bear")} a later time than that. A clock was ahead when they were written; older entries follow them, so they were rolled up too.\n`;
}
