import { describe, expect, it } from "vitest";
import type { LossReason } from "../../src/ledger/lease-keeper.ts";
import type { Deployment, Ending, GenerationSink } from "../../src/deployment/deployment.ts";
import { DeploymentRefusal } from "../../src/deployment/deployment-refusal.ts";
import { Failure } from "../../src/failure.ts";
import type { ServedGeneration } from "../../src/generation/generation-control.ts";
import {
  type AnswerEnding,
  type AnswerSink,
  serveGeneration,
} from "../../src/generation/serve-generation.ts";
import type { AdmitOrder, Ledger, Settlement } from "../../src/ledger/ledger.ts";
import type { GenerationFacts, Telemetry } from "../../src/telemetry/events.ts";

const prices = { inputNanosPerMillion: 1_000_000_000n, outputNanosPerMillion: 4_000_000_000n };
const usage = { inputTokens: 10, cachedInputTokens: 0, outputTokens: 5, reasoningTokens: 0 };
const finished: Ending = {
  type: "finished",
  finish: { reason: "stop", stopSequence: null },
  usage,
};

/** A generation between a ledger and a deployment that do what the test says, and nothing else. */
function begin(faults: {
  readonly admit?: () => Promise<never>;
  readonly settle?: () => Promise<never>;
  readonly onEvents?: () => void;
  readonly onAdmitted?: () => void;
  readonly onReduced?: () => boolean;
  readonly monotonicMs?: () => number;
}) {
  const orders: AdmitOrder[] = [];
  const settlements: Settlement[] = [];
  const calls: string[] = [];
  const prompts: unknown[] = [];
  const leases = new Map<string, (why: LossReason) => void>();
  const settling: string[] = [];
  let facts: GenerationFacts | null = null;
  const started = Promise.withResolvers<GenerationSink>();
  const ended = Promise.withResolvers<AnswerEnding>();
  const ledger = {
    async admit(order: AdmitOrder) {
      orders.push(order);
      if (faults.admit !== undefined) await faults.admit();
      return { allowance: 100, reservedNanos: 1_000_000n, prices };
    },
    async settle(settlement: Settlement) {
      settlements.push(settlement);
      if (faults.settle !== undefined) await faults.settle();
      return { chargedNanos: settlement.usage === null ? 0n : 30_000n, applied: true };
    },
  } as unknown as Ledger;
  const deployment = {
    describe: () => ({ ready: true, model: "m", contextTokens: 50, takesTools: true }),
    start(prompt: unknown, outputTokensMax: number, sink: GenerationSink) {
      prompts.push(prompt);
      calls.push(`start ${String(outputTokensMax)}`);
      let over = false;
      const end = (ending: Ending): void => {
        over = true;
        sink.end(ending);
      };
      queueMicrotask(() => started.resolve({ ...sink, end }));
      return {
        pause: () => void calls.push("pause"),
        resume: () => void calls.push("resume"),
        cancel: () => {
          calls.push("cancel");
          queueMicrotask(() => {
            if (!over) end({ type: "cancelled" });
          });
        },
      };
    },
  } as unknown as Deployment;
  const telemetry = {
    failed: () => void calls.push("failed"),
    settlementLate: () => void calls.push("late"),
    deploymentRefused: () => void calls.push("refused"),
  } as unknown as Telemetry;
  const answer: AnswerSink = {
    admitted() {
      calls.push("admitted");
      faults.onAdmitted?.();
    },
    reduced(allowance) {
      calls.push(`reduced ${String(allowance)}`);
      return faults.onReduced?.() ?? true;
    },
    accepted: () => void calls.push("accepted"),
    events() {
      calls.push("events");
      faults.onEvents?.();
    },
    end(ending, told) {
      calls.push(ending.type);
      facts = told;
      ended.resolve(ending);
    },
  };
  const served: ServedGeneration = serveGeneration(
    {
      requestId: "req_1",
      caller: {
        accountId: "acct_a",
        keyId: "key_a",
        ticket: null,
        rate: { limit: 1, remaining: 1, resetMs: 0 },
        concurrentRequests: 4,
      },
      format: "messages",
      streamed: true,
      label: null,
      prompt: { bytes: new Uint8Array() },
      inputBound: 100,
      inputTokensEstimate: 20,
      outputTokensRequested: null,
    },
    answer,
    {
      ledger,
      deployment,
      telemetry,
      leases: {
        hold: (id, onLost) => void leases.set(id, onLost),
        settling: (id) => void settling.push(`${id}, ${String(settlements.length)} sent`),
        drop: (id) => void leases.delete(id),
      },
      monotonicMs: faults.monotonicMs ?? (() => performance.now()),
    },
  );
  return {
    orders,
    settlements,
    calls,
    prompts,
    leases,
    settling,
    served,
    sink: started.promise,
    ended: ended.promise,
    facts: () => facts,
  };
}

/** What a deployment ends with that has no room, and says with how much output it would have. */
function noRoom(outputTokensFitting: number | null): Ending {
  const fields = { status: 400, type: null, code: null, param: null, words: "too long" };
  const cause = new DeploymentRefusal(fields, outputTokensFitting);
  return { type: "failed", failure: new Failure("input_too_large", "Too long.", { cause }) };
}

const piece = [
  { type: "text-start" },
  { type: "text-delta", text: "a" },
  { type: "text-end" },
] as const;

describe("serving a generation", () => {
  it("admits, starts with exactly the allowance, settles, and then ends", async () => {
    const one = begin({});
    const sink = await one.sink;
    expect(one.orders[0]?.outputTokensFitting).toBe(30);
    expect([...one.leases.keys()]).toEqual(["req_1"]);
    sink.accepted();
    sink.events(piece, null);
    sink.end(finished);
    expect(one.calls).not.toContain("finished");
    expect(await one.ended).toMatchObject({ type: "finished", finish: { usage } });
    expect(one.calls).toEqual(["admitted", "start 100", "accepted", "events", "finished"]);
    expect(one.settlements).toMatchObject([{ outcome: "completed", usage }]);
    // Before it is sent: the store may close the reservation in the same moment as it is asked to renew it.
    expect(one.settling).toEqual(["req_1, 0 sent"]);
    expect(one.leases.size).toBe(0);
  });

  it("tells the longest wait between two pieces; usage that comes alone is none", async () => {
    let nowMs = 0;
    const one = begin({ monotonicMs: () => nowMs });
    const sink = await one.sink;
    const pass = (ms: number, batch: Parameters<typeof sink.events>[0]): void => {
      nowMs += ms;
      sink.events(batch, usage);
    };
    const text = { type: "text-delta", text: "a" } as const;
    pass(500, [{ type: "text-start" }]);
    pass(300, [text]);
    pass(10, [text]);
    pass(20, []);
    pass(20, [text]);
    pass(30, [text, { type: "text-end" }]);
    nowMs += 100;
    sink.end(finished);
    await one.ended;
    expect(one.facts()).toMatchObject({ firstOutputMs: 800, longestSilenceMs: 40, totalMs: 980 });
  });

  it("ends an answer whose writer breaks, and charges nothing for it", async () => {
    const one = begin({
      onEvents: () => {
        throw new Error("a bug of an encoder");
      },
    });
    const sink = await one.sink;
    sink.accepted();
    sink.events(piece, null);
    expect(await one.ended).toMatchObject({ type: "failed", failure: { code: "internal" } });
    expect(one.calls).toContain("cancel");
    expect(one.settlements).toMatchObject([{ outcome: "failed", usage: null }]);
  });

  it.each([
    ["that ends what was not begun", [{ type: "text-end" }], []],
    [
      "that begins twice",
      [{ type: "text-start" }, { type: "reasoning-start" }, { type: "reasoning-end" }],
      [],
    ],
    [
      "that goes on with another part",
      [{ type: "text-start" }],
      [{ type: "tool-call-delta", arguments: "{" }],
    ],
    ["whose last part is open at the end", [{ type: "text-start" }], []],
  ] as const)(
    "fails an answer %s: a bug that no client is to take for an answer",
    async (_what, first, second) => {
      const one = begin({});
      const sink = await one.sink;
      sink.accepted();
      sink.events(first, null);
      sink.events(second, null);
      sink.end(finished);
      expect(await one.ended).toMatchObject({ type: "failed", failure: { code: "internal" } });
      expect(one.settlements).toMatchObject([{ outcome: "failed", usage: null }]);
    },
  );

  it("judges the deployment's usage by what was admitted", async () => {
    const one = begin({});
    const sink = await one.sink;
    sink.events(piece, { ...usage, inputTokens: 100, outputTokens: 100 });
    sink.end({ ...finished, usage: { ...usage, inputTokens: 101, outputTokens: 101 } });
    const credible = { ...usage, inputTokens: 100, outputTokens: 100 };
    expect(await one.ended).toMatchObject({ finish: { usage: credible } });
    expect(one.settlements).toMatchObject([{ outcome: "completed", usage: credible }]);
    expect(one.prompts).toMatchObject([{ inputTokensMax: 100 }]);
  });

  it("never reaches the deployment when the answer cannot even be opened", async () => {
    const one = begin({
      onAdmitted: () => {
        throw new Error("a bug of a format");
      },
    });
    expect(await one.ended).toMatchObject({ type: "failed", failure: { code: "internal" } });
    expect(one.calls.some((call) => call.startsWith("start"))).toBe(false);
    expect(one.settlements).toMatchObject([{ outcome: "failed", usage: null }]);
  });

  it("cancels and charges nothing when the lease is lost", async () => {
    const one = begin({});
    const sink = await one.sink;
    sink.accepted();
    sink.events(piece, null);
    one.leases.get("req_1")?.("lease-lost");
    expect(await one.ended).toMatchObject({ type: "failed", failure: { code: "overloaded" } });
    expect(one.settlements).toMatchObject([{ outcome: "lease-lost", usage: null }]);
  });

  it("cancels, says so and charges nothing when an operator cancelled it", async () => {
    const one = begin({});
    const sink = await one.sink;
    sink.accepted();
    sink.events(piece, null);
    expect(one.served.progress).toEqual({ requestId: "req_1", outputTokens: 1 });
    one.leases.get("req_1")?.("cancelled-by-operator");
    const ending = await one.ended;
    expect(ending).toMatchObject({ type: "failed", failure: { code: "cancelled_by_operator" } });
    expect(one.settlements).toMatchObject([{ outcome: "cancelled-by-operator", usage: null }]);
  });

  it("does not start when the client left while it was being admitted", async () => {
    const gate = Promise.withResolvers<never>();
    const one = begin({ admit: () => gate.promise });
    one.served.cancel();
    gate.resolve(undefined as never);
    expect(await one.ended).toEqual({ type: "cancelled" });
    expect(one.calls).toEqual(["cancelled"]);
    expect(one.settlements).toMatchObject([{ outcome: "cancelled-before-output", usage: null }]);
  });

  it("gives back what a lost answer of the ledger may have left open, but not after a refusal", async () => {
    const lost = begin({
      admit: () => Promise.reject(new Failure("overloaded", "The ledger is away.")),
    });
    expect(await lost.ended).toMatchObject({ type: "failed", failure: { code: "overloaded" } });
    expect(lost.settlements).toMatchObject([{ requestId: "req_1", usage: null }]);
    const refused = begin({
      admit: () => Promise.reject(new Failure("insufficient_credit", "Not enough.")),
    });
    await refused.ended;
    expect(refused.settlements).toEqual([]);
  });

  it("does not let a slow ledger hold up the end for longer than its limit", async () => {
    const one = begin({ settle: () => new Promise<never>(() => undefined) });
    const sink = await one.sink;
    sink.events(piece, null);
    sink.end(finished);
    expect((await one.ended).type).toBe("finished");
    expect(one.calls).toContain("late");
    // Still ours: a settlement that is under way must not be overtaken by expiry.
    expect(one.leases.size).toBe(1);
  });

  it("pauses a deployment that starts after its reader has stopped", async () => {
    const one = begin({});
    one.served.pause();
    await one.sink;
    expect(one.calls).toContain("pause");
  });

  describe("when the deployment has no room for the allowance", () => {
    it("starts again with what fits, in the same reservation", async () => {
      const one = begin({});
      const sink = await one.sink;
      sink.end(noRoom(40));
      expect(one.calls).toEqual(["admitted", "start 100", "refused", "reduced 40", "start 40"]);
      sink.accepted();
      sink.events(piece, null);
      sink.end(finished);
      expect(await one.ended).toMatchObject({ type: "finished", finish: { usage } });
      expect(one.facts()).toMatchObject({ allowance: 40 });
      expect(one.orders).toHaveLength(1);
      expect(one.settlements).toMatchObject([{ outcome: "completed", usage }]);
    });

    it("takes usage beyond what it started with the second time for none", async () => {
      const one = begin({});
      const sink = await one.sink;
      sink.end(noRoom(40));
      sink.events(piece, null);
      sink.end({ ...finished, usage: { ...usage, outputTokens: 41 } });
      expect(await one.ended).toMatchObject({ finish: { usage: { ...usage, outputTokens: 1 } } });
    });

    it("tries three times with less, then fails and charges nothing", async () => {
      const one = begin({});
      const sink = await one.sink;
      for (const fitting of [50, 25, 12, 6]) sink.end(noRoom(fitting));
      expect(await one.ended).toMatchObject({ failure: { code: "input_too_large" } });
      expect(one.calls.filter((call) => call.startsWith("start"))).toEqual([
        "start 100",
        "start 50",
        "start 25",
        "start 12",
      ]);
      expect(one.settlements).toMatchObject([{ outcome: "refused", usage: null }]);
    });

    it.each([
      ["the caller was told the number already", { onReduced: () => false }, 40, "input_too_large"],
      ["the deployment names none", {}, null, "input_too_large"],
      [
        "the answer cannot be opened again",
        {
          onReduced: () => {
            throw new Error("a bug of a format");
          },
        },
        40,
        "internal",
      ],
    ])("fails when %s", async (_when, faults, fitting, code) => {
      const one = begin(faults);
      (await one.sink).end(noRoom(fitting));
      expect(await one.ended).toMatchObject({ type: "failed", failure: { code } });
      expect(one.calls.filter((call) => call.startsWith("start"))).toEqual(["start 100"]);
      expect(one.settlements).toMatchObject([{ usage: null }]);
    });

    it("does not start again for a client that has left", async () => {
      const one = begin({});
      const sink = await one.sink;
      one.served.cancel();
      sink.end(noRoom(40));
      expect((await one.ended).type).toBe("failed");
      expect(one.calls).not.toContain("start 40");
    });

    it("pauses and cancels the second as it would the first", async () => {
      const one = begin({});
      const sink = await one.sink;
      one.served.pause();
      sink.end(noRoom(40));
      expect(one.calls.slice(-2)).toEqual(["start 40", "pause"]);
      one.served.cancel();
      expect(await one.ended).toEqual({ type: "cancelled" });
    });
  });
});
