import { failureFromUnknown } from "../failure.ts";
import { limits } from "../limits.ts";
import { answerBytes, answerJson, type Exchange } from "./exchange.ts";
import type { Service } from "./service.ts";

/** The process is up; says nothing of what it depends on. */
export function handleAlive(exchange: Exchange): void {
  answerJson(exchange, { status: 200 }, { status: "ok" });
}

/** Ledger and deployment answer, and new requests are welcome; otherwise 503 with the reasons. */
export async function handleReady(exchange: Exchange, service: Service): Promise<void> {
  const timeout = AbortSignal.any([exchange.gone, AbortSignal.timeout(limits.readinessMs)]);
  // Each is caught at once: one that fails while another is awaited would end the process.
  const outcomes = {
    ledger: outcome(service.ledger.check()),
    deployment: outcome(service.deployment.check(timeout)),
  };
  const reasons: Record<string, string> = {};
  for (const [name, pending] of Object.entries(outcomes)) {
    const failure = await pending;
    if (failure !== null) reasons[name] = failure;
  }
  if (service.state.draining) reasons["service"] = "shutting down";
  const ready = Object.keys(reasons).length === 0;
  answerJson(
    exchange,
    { status: ready ? 200 : 503 },
    ready ? { status: "ready" } : { status: "not ready", reasons },
  );
}

async function outcome(check: Promise<void>): Promise<string | null> {
  try {
    await check;
    return null;
  } catch (error) {
    return failureFromUnknown(error).message;
  }
}

/** Metrics in the Prometheus text format. */
export function handleMetrics(exchange: Exchange, service: Service): void {
  const headers = { "content-type": "text/plain; version=0.0.4; charset=utf-8" };
  answerBytes(exchange, { status: 200, headers }, Buffer.from(service.metrics()));
}
