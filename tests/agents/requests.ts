import { hash } from "node:crypto";
import { costNanos } from "../../src/admission/price.ts";
import type { Usage } from "../../src/conversation/generation-event.ts";
import { isRecord } from "../cases/files.ts";
import type { TestService } from "../service/start-service.ts";
import { usageOf } from "./script.ts";

/** One request of an agent as the service's log has it. */
export interface SeenRequest {
  readonly requestId: string;
  readonly keyId: string;
  readonly method: string;
  readonly route: string;
  readonly status: number;
  readonly failureCode: string | null;
  readonly streamed: boolean | null;
  readonly endedAtMs: number;
}

/** The requests that ended so far, oldest first. */
export function seenRequests(service: TestService): readonly SeenRequest[] {
  return service.logLines.flatMap((line) => {
    // Some lines are no JSON: what a first start prints.
    if (!line.startsWith("{")) return [];
    const value: unknown = JSON.parse(line);
    if (!isRecord(value) || value["event"] !== "request") return [];
    const { generation, time } = value;
    return [
      {
        requestId: String(value["requestId"]),
        keyId: String(value["keyId"]),
        method: String(value["method"]),
        route: String(value["route"]),
        status: Number(value["status"]),
        failureCode: typeof value["failureCode"] === "string" ? value["failureCode"] : null,
        streamed: isRecord(generation) ? generation["streamed"] === true : null,
        endedAtMs: typeof time === "number" ? time : Date.parse(String(time)),
      },
    ];
  });
}

/** Bodies that reached the deployment more than once. */
export function repeatedBodies(bodies: readonly string[]): number {
  return bodies.length - new Set(bodies.map((body) => hash("sha256", body))).size;
}

/** The ledger against the requests: each that went well was charged what its usage costs, once, all others nothing. */
export async function chargeProblems(
  service: TestService,
  requests: readonly SeenRequest[],
  { agentKeyId, spentNanos }: { readonly agentKeyId: string; readonly spentNanos: bigint },
): Promise<readonly string[]> {
  const problems: string[] = [];
  let charged = 0n;
  const answers: (number | null)[] = [];
  for (const { failureCode, keyId, requestId, status, streamed } of requests) {
    if (streamed === null) continue;
    const receipt = await service.ledger.showReceipt(requestId);
    const went = status === 200 && failureCode === null;
    const cost = receipt.chargedNanos ?? -1n;
    charged += cost;
    const { usage, outcome } = receipt;
    if (went && keyId === agentKeyId) answers.push(answerOf(usage));
    const wanted =
      !went || usage === null
        ? 0n
        : costNanos(usage.inputTokens, usage.outputTokens, receipt.prices);
    if (receipt.state !== "settled" || (outcome === "completed") !== went || cost !== wanted) {
      problems.push(
        `${requestId}: ${receipt.state}, ${outcome ?? "open"}, charged ${cost.toString()}`,
      );
    }
    if (went && wanted === 0n) problems.push(`${requestId} was not charged`);
  }
  if (answers.includes(null) || new Set(answers).size !== answers.length) {
    problems.push(`not every answer's usage was charged once: ${answers.join(", ")}`);
  }
  if (spentNanos !== charged) {
    problems.push(`${spentNanos.toString()} left the account, receipts say ${charged.toString()}`);
  }
  return problems;
}

/** Which scripted answer has this usage; null for none. */
function answerOf(usage: Usage | null): number | null {
  if (usage === null) return null;
  const index = (usage.inputTokens - usageOf(0).promptTokens) / 100;
  const told = usageOf(index);
  return Number.isInteger(index) && told.completionTokens === usage.outputTokens ? index : null;
}
