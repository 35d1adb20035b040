import { writeSync } from "node:fs";
import { Failure } from "../../src/failure.ts";
import type { AdmitOrder } from "../../src/ledger/ledger.ts";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import { defaultSettings } from "./support.ts";

// A process that is killed while it works. What it writes has left it when the call returns: a line that the parent
// reads was seen by a caller before the kill.

const callers = 12;
const [synchronous, path = "", ...keys] = process.argv.slice(2);
const ledger = await openSqliteLedger(
  {
    ...defaultSettings,
    synchronous: synchronous === "normal" ? "normal" : "full",
    // Those of its callers, and the one that stays open.
    concurrencyPerAccount: callers / 2 + 1,
    // Some hundred requests have the log written into the file.
    logPages: 500,
    path,
  },
  { now: Date.now },
);

const keyOf = (caller: number): string => keys[caller % keys.length] ?? "";

function say(...words: readonly (string | bigint | boolean)[]): void {
  for (;;) {
    try {
      writeSync(1, `${words.join(" ")}\n`);
      return;
    } catch (error) {
      // The pipe is full: its reader has not had the processor for a while. A line this short goes whole or not at all.
      if (!(error instanceof Error && "code" in error && error.code === "EAGAIN")) throw error;
    }
  }
}

function unlessRefused(error: unknown): null {
  if (error instanceof Failure) return null;
  throw error;
}

/** The order that was admitted; null: it was refused. */
async function admit(caller: number, round: number): Promise<AdmitOrder | null> {
  const authorized = await ledger.authorize(keyOf(caller), false).catch(unlessRefused);
  if (authorized === null) return null;
  const order: AdmitOrder = {
    requestId: `req_${String(process.pid)}x${String(caller)}x${String(round)}`,
    caller: authorized,
    inputBound: 500 + caller,
    outputTokensRequested: 1 + ((round * 37) % 300),
    outputTokensFitting: null,
    format: "messages",
    streamed: true,
    label: null,
  };
  // A busy machine may take longer than a caller waits: it is refused, and comes again.
  const admission = await ledger.admit(order).catch(unlessRefused);
  if (admission === null) return null;
  say("admitted", order.requestId, admission.reservedNanos);
  return order;
}

async function serve(caller: number): Promise<never> {
  for (let round = 0; ; round += 1) {
    const order = await admit(caller, round);
    if (order === null) continue;
    // Some are open for a while, so that a kill finds reservations in every state.
    // Real time: the parent kills this process at any moment of it.
    if (round % 3 === caller % 3) await new Promise((resolve) => setTimeout(resolve, round % 9));
    const settled = await ledger.settle({
      requestId: order.requestId,
      accountId: order.caller.accountId,
      outcome: "completed",
      usage: {
        inputTokens: 400,
        cachedInputTokens: 0,
        outputTokens: round % 200,
        reasoningTokens: 0,
      },
      firstOutputMs: 1,
      totalMs: 2,
    });
    say("settled", order.requestId, settled.chargedNanos, settled.applied);
  }
}

// One stays open, so that each kill finds at least one that is, whatever moment it takes.
for (let round = 0; (await admit(callers, round)) === null; round += 1);
say("ready");
await Promise.all(Array.from({ length: callers }, (_, caller) => serve(caller)));
