import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import { systemTimers } from "../../src/timers.ts";
import { openDeliverer } from "../../src/webhooks/deliverer.ts";
import { openPostEvent } from "../../src/webhooks/post-event.ts";
import { defaultSettings } from "../ledger/support.ts";

// A process that changes accounts and delivers what happens, until it is killed. Its ledger's time runs faster than that
// of the machine, so that three days of tries pass in half a minute; connections and timers are real.

const [address = "", beganMs = "", speed = "", ...accounts] = process.argv.slice(2);
const now = (): number => Number(beganMs) + (Date.now() - Number(beganMs)) * Number(speed);
const ledger = address.startsWith("postgres:")
  ? await openPostgresLedger({ ...defaultSettings, url: address }, { now })
  : await openSqliteLedger({ ...defaultSettings, synchronous: "full", path: address }, { now });

const timers = {
  ...systemTimers,
  // Looks come as much more often as time passes faster, but for the processor's sake not more often than every 20 ms.
  set: (callback: () => void, delayMs: number) =>
    systemTimers.set(
      callback,
      delayMs === 15_000 ? delayMs : Math.max(delayMs / Number(speed), 20),
    ),
};
openDeliverer({
  ledger,
  post: openPostEvent({ privateAddresses: "allow", now: Date.now, timers }),
  holder: String(process.pid),
  timers,
  monotonicMs: () => performance.now(),
  isDeploymentUp: () => Promise.resolve(null),
  telemetry: { lifecycle: () => undefined, eventsGivenOut: () => undefined },
});

/** Credits one account again and again; some amounts are refused, so that their transactions leave nothing. */
async function change(account: string, at: number): Promise<never> {
  for (let round = 0; ; round += 1) {
    const amount = (round + at) % 5 === 0 ? -(10n ** 18n) : 1n;
    await ledger.creditAccount(account, amount, null).catch(() => undefined);
    // The parent counts what is committed, and ends this process when there is enough.
    process.stdout.write(".");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

await Promise.all(accounts.map(change));
