import { describe, expect, it } from "vitest";
import { Failure } from "../../src/failure.ts";
import { openReadiness } from "../../src/http/readiness.ts";
import { startService, type TestService } from "./start-service.ts";

function asked(service: TestService): number {
  return service.deployment.otherRequests.filter((path) => path === "GET /v1/models").length;
}

async function askOften(url: string): Promise<void> {
  const answers = await Promise.all(Array.from({ length: 200 }, () => fetch(url)));
  for (const answer of answers) await answer.text();
}

describe("/readyz", () => {
  it("asks the deployment nothing, and with ?deployment=1 once for all who ask within a second", async () => {
    await using service = await startService();
    const before = asked(service);
    await askOften(`${service.url}/readyz`);
    expect(asked(service)).toBe(before);
    const startedAtMs = performance.now();
    await askOften(`${service.url}/readyz?deployment=1`);
    const seconds = Math.ceil((performance.now() - startedAtMs) / 1_000);
    expect(asked(service) - before).toBeGreaterThan(0);
    expect(asked(service) - before).toBeLessThanOrEqual(seconds);
  });

  it("is ready while the deployment is away, and says so to those who ask for it", async () => {
    await using service = await startService();
    await service.deployment[Symbol.asyncDispose]();
    const answer = await fetch(`${service.url}/readyz`);
    expect([answer.status, await answer.json()]).toEqual([200, { status: "ready" }]);
    for (const query of ["?deployment=1", "?x=%zz&deployment=1&y"]) {
      const deep = await fetch(`${service.url}/readyz${query}`);
      expect([deep.status, await deep.json()]).toEqual([
        503,
        {
          status: "not ready",
          reasons: { deployment: "The deployment cannot be reached." },
        },
      ]);
    }
    expect((await fetch(`${service.url}/readyz?deployment=0`)).status).toBe(200);
  });
});

describe("readiness", () => {
  it("tells the log once that the ledger fails, with the cause, and once that it is back", async () => {
    const told: unknown[] = [];
    const cause = new Error("database or disk is full");
    const failure = new Failure("overloaded", "The ledger cannot be written.", { cause });
    const outcomes = [null, failure, failure, null, null];
    let nowMs = 0;
    const readiness = openReadiness({
      ledger: {
        async check() {
          const outcome = outcomes.shift();
          if (outcome instanceof Failure) throw outcome;
        },
      },
      deployment: { check: () => Promise.reject(new Failure("overloaded", "away")) },
      telemetry: {
        notReady: (facts) => void told.push(facts),
        lifecycle: (event) => void told.push(event),
      },
      monotonicMs: () => nowMs,
    });
    const answers: unknown[] = [];
    for (let turn = 0; turn < 5; turn += 1) {
      answers.push(await readiness.ledger());
      nowMs += 1_000;
    }
    const refused = { ledger: "The ledger cannot be written." };
    expect(answers).toEqual([{}, refused, refused, {}, {}]);
    expect(told).toEqual([{ reason: refused.ledger, cause }, "ready again"]);
    expect(await readiness.generations()).toEqual({ deployment: "away" });
  });
});
