import type { Deployment } from "../deployment/deployment.ts";
import { Failure } from "../failure.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { systemTimers, type Timers } from "../timers.ts";
import { limits } from "../limits.ts";
import type { Telemetry } from "../telemetry/events.ts";
import { shareCheck } from "./shared-check.ts";

/** Why the service is not ready, by what it depends on; {} when it is. */
export type NotReadyReasons = Readonly<Partial<Record<"ledger" | "deployment", string>>>;

/** What `/readyz` asks; ledger and deployment are asked once in a while, however often it is called. */
export interface Readiness {
  /** Whether the ledger can be written. */
  ledger(): Promise<NotReadyReasons>;
  /** Whether a generation would be served: the deployment is asked too. */
  generations(): Promise<NotReadyReasons>;
}

/** What readiness is made of. */
export interface ReadinessParts {
  readonly ledger: Pick<Ledger, "check">;
  readonly deployment: Pick<Deployment, "check">;
  readonly telemetry: Pick<Telemetry, "notReady" | "lifecycle">;
  readonly monotonicMs: () => number;
  readonly timers?: Timers;
}

/** Opens the readiness of a service. The log gets a line when the ledger fails, and one when it is back. */
export function openReadiness(parts: ReadinessParts): Readiness {
  const { deployment, ledger, telemetry } = parts;
  let loggedReason: string | null = null;
  const common = {
    heldMs: limits.readinessHeldMs,
    timeoutMs: limits.readinessMs,
    monotonicMs: parts.monotonicMs,
    timers: parts.timers ?? systemTimers,
  };
  const askLedger = shareCheck(() => ledger.check(), {
    ...common,
    silence: () => silent("The ledger"),
  });
  const askDeployment = shareCheck((signal) => deployment.check(signal), {
    ...common,
    silence: () => silent("The deployment"),
  });

  function logChange(failure: Failure | null): void {
    const reason = failure?.message ?? null;
    if (reason === loggedReason) return;
    loggedReason = reason;
    if (failure === null) telemetry.lifecycle("ready again", {});
    else telemetry.notReady({ reason: failure.message, cause: failure.facts.cause ?? failure });
  }

  async function reasonsOfLedger(): Promise<NotReadyReasons> {
    const failure = await askLedger();
    logChange(failure);
    return failure === null ? {} : { ledger: failure.message };
  }

  return {
    ledger: reasonsOfLedger,
    async generations() {
      const [reasons, failure] = await Promise.all([reasonsOfLedger(), askDeployment()]);
      return failure === null ? reasons : { ...reasons, deployment: failure.message };
    },
  };
}

function silent(name: string): Failure {
  const seconds = String(limits.readinessMs / 1_000);
  return new Failure("overloaded", `${name} has not answered within ${seconds} seconds.`, {
    retryAfterSeconds: 2,
  });
}
