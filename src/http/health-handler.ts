import { answerBytes, answerJson } from "./answer.ts";
import type { Exchange } from "./exchange.ts";
import type { Service } from "./service.ts";

/** The process is up; says nothing of what it depends on. */
export function handleAlive(exchange: Exchange): void {
  answerJson(exchange, { status: 200 }, { status: "ok" });
}

/**
 * 200 while this process takes requests and its ledger can be written, else 503 with the reasons. A deployment that is
 * away counts with `?deployment=1` only: no other replica could answer better, and callers get the reason from this one.
 */
export async function handleReady(exchange: Exchange, service: Service): Promise<void> {
  const { readiness, state } = service;
  const asked = asksForDeployment(exchange.request.url ?? "");
  const reasons: Record<string, string> = {
    ...(await (asked ? readiness.generations() : readiness.ledger())),
  };
  if (state.leaving || state.draining) reasons["service"] = "shutting down";
  const ready = Object.keys(reasons).length === 0;
  answerJson(
    exchange,
    { status: ready ? 200 : 503 },
    ready ? { status: "ready" } : { status: "not ready", reasons },
  );
}

function asksForDeployment(url: string): boolean {
  const [, query = ""] = url.split("?", 2);
  return new URLSearchParams(query).get("deployment") === "1";
}

/** Metrics in the Prometheus text format, or the line that says where they are. */
export async function handleMetrics(exchange: Exchange, service: Service): Promise<void> {
  if (!service.settings.servesMetrics) {
    const headers = { "content-type": "text/plain; charset=utf-8" };
    answerBytes(exchange, { status: 410, headers }, metricsMoved);
    return;
  }
  const headers = { "content-type": "text/plain; version=0.0.4; charset=utf-8" };
  answerBytes(exchange, { status: 200, headers }, await service.metrics());
}

// It does not tell callers the address.
const metricsMoved = Buffer.from(
  "/metrics is on the operators' listener: TRIBUTARY_OPERATOR_PORT, 8081 unless set; TRIBUTARY_METRICS=both has it here too.\n",
);
