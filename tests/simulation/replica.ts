import { Failure } from "../../src/failure.ts";
import type { ServedGeneration } from "../../src/generation/generation-control.ts";
import {
  serveGeneration,
  type AnswerSink,
  type GenerationOrder,
} from "../../src/generation/serve-generation.ts";
import {
  openLeaseKeeper,
  type LeaseKeeper,
  type LossReason,
} from "../../src/ledger/lease-keeper.ts";
import type { Caller, Ledger } from "../../src/ledger/ledger.ts";
import { openStoreLedger } from "../../src/ledger/store-ledger.ts";
import type { StoreClient } from "../../src/ledger/store-operations.ts";
import type { Telemetry } from "../../src/telemetry/events.ts";
import type { Story } from "./charge-table.ts";
import { deadAskMs, type Phase, type RequestPlan, type Rules } from "./plan.ts";
import { secretOf } from "./policies.ts";
import { deploymentOf, startScripted } from "./scripted-generation.ts";
import { Violation } from "./violation.ts";
import type { Process, World } from "./world.ts";

// How long a terminal frame waits for a store that is slow.
const settlementWaitMs = 250;

export interface ReplicaParts {
  readonly world: World;
  readonly rules: Rules;
  readonly process: Process;
  readonly client: StoreClient;
  /** Called with a rule that was broken: thrown, it would be taken for a failure of a request. */
  readonly fail: (violation: Violation) => void;
  readonly onPhase: (plan: RequestPlan, phase: Phase) => void;
  /** What was charged for a request by the model, in nanos. */
  readonly chargedByModel: (requestId: string) => bigint;
  /** What was reserved for output tokens. */
  readonly allowanceByModel: (requestId: string) => number | null;
}

/** One life of one process of the service: the real ledger, lease keeper and generation, in simulated surroundings. */
export class Replica {
  readonly process: Process;
  private readonly parts: ReplicaParts;
  private readonly ledger: Ledger;
  private readonly keeper: LeaseKeeper;
  private readonly serving = new Map<string, { story: Story; served: ServedGeneration }>();
  private readonly leaving = new Map<string, () => void>();
  private readonly late = new Set<string>();
  private draining = false;

  constructor(parts: ReplicaParts) {
    this.parts = parts;
    this.process = parts.process;
    const timers = parts.world.timersOf(parts.process);
    this.ledger = openStoreLedger(parts.client, {
      timers,
      wallMs: () => parts.world.wallMs(),
    });
    this.keeper = openLeaseKeeper(this.ledger, {
      leaseMs: parts.rules.leaseMs,
      telemetry: this.telemetry(),
      monotonicMs: () => this.monotonicMs(),
      wallMs: () => parts.world.wallMs(),
      timers,
      deadAskMs,
    });
  }

  private monotonicMs(): number {
    return this.parts.world.nowMs - this.process.suspendedMs;
  }

  /** A request has arrived; its client leaves when the plan says. Never rejects. */
  async serve(story: Story): Promise<void> {
    const { onPhase, world } = this.parts;
    const { plan } = story;
    let left = false;
    this.leaving.set(plan.id, () => {
      if (story.told !== null || left) return;
      left = true;
      world.note(() => `client      ${plan.id} leaves`);
      if (story.said.ending === null) story.stoppedBy ??= "client";
      this.serving.get(plan.id)?.served.cancel();
    });
    if (plan.leavesAfterMs !== null) this.leave(plan.id, plan.leavesAfterMs);
    if (this.draining) {
      story.told = { type: "failed", code: "overloaded" };
      return;
    }
    let caller: Caller;
    const presented = secretOf(plan.key.presented, plan.secret ?? 0);
    try {
      const authorizing = this.ledger.authorize(presented, true, true);
      onPhase(plan, "authorize-sent");
      caller = await authorizing;
    } catch (error) {
      this.tell(story, "failed", error);
      return;
    }
    onPhase(plan, "authorized");
    // The body comes in the meantime.
    world.after(
      world.draws.between(`${plan.id} body`, 0, 30),
      `${plan.id} body`,
      this.process,
      () => {
        if (left) {
          story.told = { type: "cancelled", code: null };
          return;
        }
        if (this.draining) {
          story.told = { type: "failed", code: "overloaded" };
          return;
        }
        this.generate(story, caller);
      },
    );
  }

  /** The client of a request goes away, where it is still there. */
  leave(requestId: string, afterMs = 0): void {
    this.parts.world.after(afterMs, `${requestId} leaves`, this.process, () =>
      this.leaving.get(requestId)?.(),
    );
  }

  private generate(story: Story, caller: Caller): void {
    const { rules, world } = this.parts;
    const { plan } = story;
    const order: GenerationOrder = {
      requestId: plan.id,
      caller,
      format: "messages",
      streamed: true,
      label: plan.label,
      prompt: { bytes: new Uint8Array() },
      inputBound: plan.inputBound,
      inputTokensEstimate: plan.inputTokensEstimate,
      outputTokensRequested: plan.requested,
    };
    const timers = world.timersOf(this.process);
    const served = serveGeneration(order, this.sinkOf(story), {
      ledger: this.watchedLedger(story),
      deployment: deploymentOf(rules.contextTokens, (_prompt, outputTokensMax, sink) => {
        const reserved = this.parts.allowanceByModel(plan.id);
        this.ensure(
          reserved === outputTokensMax,
          "what is sent upstream as the limit is what was reserved",
          () => `${plan.id}: sent ${String(outputTokensMax)}, reserved ${String(reserved)}`,
        );
        const { said } = story;
        return startScripted(plan, sink, { world, replica: this.process, said, outputTokensMax });
      }),
      leases: {
        hold: (requestId, onLost, askedAtMs) => {
          const lost = (why: LossReason): void => {
            if (story.said.ending === null)
              story.stoppedBy ??= why === "lease-lost" ? "lease" : "operator";
            world.note(() => `${this.process.name}  has to end ${requestId}: ${why}`);
            onLost(why);
          };
          this.keeper.hold(requestId, lost, askedAtMs);
        },
        settling: (requestId) => {
          this.keeper.settling(requestId);
        },
        drop: (requestId) => {
          this.keeper.drop(requestId);
        },
      },
      telemetry: this.telemetry(),
      monotonicMs: () => this.monotonicMs(),
      timers,
    });
    this.serving.set(plan.id, { story, served });
  }

  private watchedLedger(story: Story): Ledger {
    return {
      ...this.ledger,
      admit: async (order) => {
        try {
          return await this.ledger.admit(order);
        } catch (error) {
          story.notAdmitted = true;
          throw error;
        }
      },
    };
  }

  private sinkOf(story: Story): AnswerSink {
    const { plan } = story;
    const { chargedByModel, onPhase } = this.parts;
    return {
      admitted: () => {
        onPhase(plan, "admitted");
      },
      reduced: () => false,
      accepted: () => {
        onPhase(plan, "accepted");
      },
      events: () => {
        this.ensure(story.told === null, "nothing after the end", () => plan.id);
        onPhase(plan, "output");
      },
      end: (ending, facts) => {
        this.serving.delete(plan.id);
        this.tell(story, ending.type, ending.type === "failed" ? ending.failure : null);
        const charged = facts?.chargedNanos ?? 0n;
        const owed = this.late.has(plan.id) ? charged : chargedByModel(plan.id);
        this.ensure(
          charged === owed && (charged === 0n || !this.late.has(plan.id)),
          "a client is told what was charged",
          () => `${plan.id}: told ${String(charged)}, charged ${String(owed)}`,
        );
        onPhase(plan, "ended");
      },
    };
  }

  private tell(story: Story, type: string, error: unknown): void {
    const { plan } = story;
    const code = error instanceof Failure ? error.code : null;
    this.parts.world.note(() => `client      ${plan.id} is told ${code ?? type}`);
    this.ensure(story.told === null, "one end for each request", () => plan.id);
    this.ensure(
      code !== "internal" && (error === null || code !== null),
      "no failure of our own making",
      () => `${plan.id}: ${String(error)}`,
    );
    story.told = { type, code };
  }

  /** Ends everything in order: what runs is failed, settlements are finished. */
  drain(): void {
    this.draining = true;
    for (const { served, story } of [...this.serving.values()]) {
      if (story.said.ending === null) story.stoppedBy ??= "service";
      served.fail(new Failure("overloaded", "Simulated: the service is shutting down."));
    }
  }

  /** Closes as the service does after a drain. */
  async close(): Promise<void> {
    await this.keeper[Symbol.asyncDispose]();
    await this.ledger[Symbol.asyncDispose]();
    this.process.alive = false;
  }

  private ensure(holds: boolean, rule: string, detail: () => string): void {
    if (!holds) this.parts.fail(new Violation(rule, detail()));
  }

  private telemetry(): Telemetry {
    return {
      requestEnded() {},
      failed: ({ cause, requestId }) => {
        // A store that is away when the service closes loses the last try; the lease ends what was held.
        if (this.draining && cause instanceof Failure && cause.code === "overloaded") return;
        this.ensure(false, "no failure of our own making", () => `${requestId}: ${String(cause)}`);
      },
      deploymentRefused() {},
      settlementLate: ({ requestId }) => {
        this.late.add(requestId);
        const { nowMs } = this.parts.world;
        const fromMs = this.serving.get(requestId)?.story.settledFromMs ?? nowMs;
        this.ensure(
          nowMs - fromMs >= settlementWaitMs,
          "the end of an answer waits for its settlement",
          () => `${requestId}: only ${String(nowMs - fromMs)} ms`,
        );
      },
      leasesLost() {},
      reservationsExpired() {},
      notReady() {},
      ledgerRetry() {},
      certificateUsed() {},
      lifecycle() {},
    };
  }
}
