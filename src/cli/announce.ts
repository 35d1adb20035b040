import { setTimeout as sleep } from "node:timers/promises";
import { formatCredit } from "../admission/price.ts";
import type { Config } from "../config/config.ts";
import type { Gateway } from "../gateway.ts";
import type { Log } from "../telemetry/log.ts";
import type { ServiceTelemetry } from "../telemetry/telemetry.ts";
import type { Shell } from "./command.ts";
import { writeFirstKey } from "./first-key.ts";
import { describeFirstStart, describeStart, type FirstKey, type Started } from "./welcome.ts";

/** How long the first screen waits for weights that load and for what a deployment tells of itself. */
const readyWaitMs = 3_000;

/** What `announce` needs to show a start on the terminal or in the log. */
export interface Announcement {
  readonly config: Config;
  readonly log: Pick<Log, "pretty" | "print">;
  readonly shell: Pick<Shell, "programName" | "stdout">;
  readonly telemetry: Pick<ServiceTelemetry, "lifecycle">;
  /** Resolves when the service has to stop. */
  readonly stop: Promise<unknown>;
  /** Whether weights are on their way, which takes longer than a start waits. */
  readonly isDownloading: () => boolean;
  /** A link that signs the first operator in; null: there has been one. Made for a terminal alone. */
  readonly loginLink: () => Promise<string | null>;
}

/** Tells where the service listens: on a terminal what to do next and the first key, elsewhere lines of the log. */
export async function announce(
  gateway: Pick<Gateway, "address" | "describe" | "first">,
  parts: Announcement,
): Promise<void> {
  const { config, log, shell, telemetry } = parts;
  const { host, port, url } = gateway.address;
  const engine = config.deployment === null ? "embedded" : "openai-compatible";
  telemetry.lifecycle("listening", { url, host, port, engine });
  const first = gateway.first === null ? null : firstKey(gateway.first);
  if (!log.pretty || !shell.stdout.terminal) {
    if (first !== null) keepFirstKey(first, parts);
    return;
  }
  await Promise.race([readiness(gateway, parts), parts.stop]);
  // Where it cannot be made, the start says why, or `operator login-link` does.
  const loginLink = await Promise.race([
    parts.loginLink().catch(() => null),
    parts.stop.then(() => null),
  ]);
  const description = gateway.describe();
  const started: Started = {
    url,
    model: description.model,
    ready: description.ready,
    free: Object.values(config.prices).every((price) => price === 0n),
    programName: shell.programName,
    loginLink,
  };
  log.print(first === null ? describeStart(started) : describeFirstStart(started, first));
}

/** What is logged is collected and kept; a file of this user is not. */
function keepFirstKey({ key, ...account }: FirstKey, parts: Announcement): void {
  const { config, telemetry } = parts;
  try {
    telemetry.lifecycle("first_key", { ...account, file: writeFirstKey(config.dataDir, key) });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    telemetry.lifecycle("first_key not written", { ...account, reason });
  }
}

function firstKey({ account, secret }: NonNullable<Gateway["first"]>): FirstKey {
  return {
    accountId: account.id,
    accountName: account.name,
    balance: formatCredit(account.balanceNanos),
    key: secret,
  };
}

async function readiness(gateway: Pick<Gateway, "describe">, parts: Announcement): Promise<void> {
  const until = performance.now() + readyWaitMs;
  while (!gateway.describe().ready && !parts.isDownloading() && performance.now() < until)
    await sleep(50);
}
