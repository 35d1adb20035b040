import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { openArchiveFile } from "../src/ledger/archive/archive-file.ts";
import { type Archived, archiveBefore } from "../src/ledger/archive/archive-run.ts";
import type { RequestId } from "../src/ledger/scalars.ts";
import type { StoreLedger } from "../src/ledger/store-ledger.ts";
import { limits } from "../src/limits.ts";
import { newId } from "../src/new-id.ts";
import { writtenAccount, writtenKey } from "../tests/doubles/many-receipts.ts";
import { percentile } from "./load.ts";
import { openLedger } from "./usage-beside.ts";

// node bench/archive.ts sqlite:PATH | postgres://... DAYS [--seconds 60]: how long admissions take while receipts that are older
// are archived, in turn with times without, on a ledger of `bench/many-receipts.ts`. Ends when all are archived, or after 6 turns.

const turns = 6;
const everyMs = 20;

/** Authorizes, admits and settles a request of one account after another; how long each admission took. */
async function admitUntil(ledger: StoreLedger, until: () => boolean): Promise<readonly number[]> {
  const times: number[] = [];
  for (let number = 0; !until(); number += 1) {
    const begunMs = performance.now();
    const caller = await ledger.authorize(writtenKey(number % 20).secret, false);
    const sentMs = performance.now();
    const requestId = newId("req_") as RequestId;
    await ledger.admit({
      requestId,
      caller,
      inputBound: 1_000,
      outputTokensRequested: 100,
      outputTokensFitting: null,
      format: "messages",
      streamed: true,
      label: null,
    });
    times.push(performance.now() - sentMs);
    await ledger.settle({
      requestId,
      accountId: caller.accountId,
      outcome: "completed",
      usage: { inputTokens: 500, cachedInputTokens: 0, outputTokens: 20, reasoningTokens: 0 },
      firstOutputMs: 3,
      totalMs: 9,
    });
    await sleep(Math.max(0, everyMs - (performance.now() - begunMs)));
  }
  return times;
}

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: "string", default: "60" } },
});
const [address, days] = positionals;
if (address === undefined || days === undefined) throw new Error("name a ledger and days");
const folder = await mkdtemp(join(tmpdir(), "tributary-archive-"));
await using ledger = await openLedger(address);
const beforeMs = Date.now() - Number(days) * 86_400_000;
let accountIds = (await ledger.listAccounts())
  .map(({ id }) => id)
  .filter((id) => id >= writtenAccount(0));
for (let turn = 0; turn < turns && accountIds.length > 0; turn += 1) {
  const endsMs = performance.now() + Number(values.seconds) * 1_000;
  const isOver = (): boolean => performance.now() >= endsMs;
  const archives = turn % 2 === 1;
  await using file = openArchiveFile(folder, Date.now());
  const archiving: Promise<Archived | null> = archives
    ? archiveBefore(
        ledger,
        { accountIds, beforeMs },
        { file, rest: () => sleep(limits.archiveRestMs), goesOn: () => !isOver() },
      )
    : Promise.resolve(null);
  const times = await admitUntil(ledger, isOver);
  const done = await archiving;
  const [p50, p99, most] = [0.5, 0.99, 1].map((share) => percentile(times, share).toFixed(2));
  process.stdout.write(
    `${done === null ? "alone" : `beside ${String(done.receipts)} receipts archived`}: ${String(times.length)} admissions, p50 ${String(p50)}, p99 ${String(p99)}, slowest ${String(most)} ms\n`,
  );
  if (done?.receipts === 0) accountIds = [];
}
await rm(folder, { recursive: true, force: true });
