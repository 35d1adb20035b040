import type { ArchiveBatch } from "../../src/ledger/archive/archive-receipts.ts";
import type { StoreAnswer, StoreCall } from "../../src/ledger/store-operations.ts";
import { TableCheck, toldBy } from "./table-check.ts";
import { ensureCharge, type Story } from "./charge-table.ts";
import {
  deadAskMs,
  prefaceOf,
  type CallFault,
  type Happening,
  type Incident,
  type Phase,
  type Plan,
  type RequestPlan,
} from "./plan.ts";
import { onceCallOf } from "./once.ts";
import { secretHashOf, secretOf, type PolicyChange } from "./policies.ts";
import { Presence } from "./presence.ts";
import { describePrices, priceCallOf, type PriceHappening } from "./prices.ts";
import { Replica } from "./replica.ts";
import type { Execute, SimulatedStore } from "./simulated-store.ts";
import { openStoreLink } from "./store-link.ts";
import { type PlannedQuestion, questionAt, type UsageQuestion } from "./usage-model.ts";
import { ensure, Violation } from "./violation.ts";
import { World, type Process } from "./world.ts";

/** How one run went. */
export interface Outcome {
  readonly violation: Violation | null;
  readonly steps: number;
  readonly trace: readonly string[];
}

const stepsMax = 20_000;
// Ways to the store and back, twice, where nothing goes wrong.
const slackMs = 500;
// The longest freeze, the longest answer and a lease fit into it twice.
const longestMs = 900_000;

/** Runs a plan until everything is resolved, or until a rule is broken. The same plan and seed run the same way. */
export async function runPlan(
  plan: Plan,
  seed: number,
  parts: { readonly store: SimulatedStore; readonly traced: boolean },
): Promise<Outcome> {
  const world = new World(seed, parts.traced, plan.startsAtMs);
  const run = new Run(plan, world, parts.store);
  let violation: Violation | null = null;
  // What goes wrong inside a promise that no code awaits.
  const caught = (error: unknown): void => {
    run.fail(error);
  };
  process.on("unhandledRejection", caught);
  try {
    await run.toTheEnd();
  } catch (error) {
    violation = error instanceof Violation ? error : new Violation("no crash", stackOf(error));
  } finally {
    process.off("unhandledRejection", caught);
  }
  return { violation, steps: world.steps, trace: world.trace ?? [] };
}

class Run {
  private readonly plan: Plan;
  private readonly world: World;
  private readonly store: SimulatedStore;
  private readonly tables: TableCheck;
  private readonly presence: Presence;
  private readonly lostAtMs = new Map<string, number>();
  private readonly rotations = new Map<string, number>();
  private readonly replicas: (Replica | null)[] = [];
  private readonly stories = new Map<string, Story>();
  private readonly tries = new Map<string, number>();
  private readonly fired = new Set<Incident>();
  private operator: Execute | null = null;
  private calls = 0;
  private lives = 0;
  private givenOut = 0;
  private away: { untilMs: number; from: number | null; repliesOnly: boolean }[] = [];
  private clockJumped = false;
  private wasLongAway = false;
  private wasAway = false;
  private calm = false;
  private failure: unknown = null;
  private waiting: Incident[] = [];

  constructor(plan: Plan, world: World, store: SimulatedStore) {
    this.plan = plan;
    this.world = world;
    this.store = store;
    this.presence = new Presence(store.graceMs);
    this.tables = new TableCheck(store, plan.rules, this.presence);
  }

  fail(error: unknown): void {
    this.failure ??= error;
  }

  async toTheEnd(): Promise<void> {
    const { plan, world } = this;
    for (const line of prefaceOf(plan)) world.note(() => line);
    await this.openAccounts();
    for (let slot = 0; slot < plan.replicas; slot += 1) await this.start(slot);
    for (const request of plan.requests)
      world.after(request.atMs, `${request.id} arrives`, null, () => {
        this.arrive(request);
      });
    let lastMs = Math.max(...plan.requests.map(({ atMs }) => atMs), 0);
    for (const incident of plan.incidents) {
      if (!("atMs" in incident.when)) continue;
      lastMs = Math.max(lastMs, incident.when.atMs);
      world.after(incident.when.atMs, "incident", null, () => this.happen(incident));
    }
    // Until here everything may go wrong; then the weather clears, and all must come to rest.
    await this.until(() => world.nowMs >= lastMs + 150_000 || this.atRest());
    await this.clear();
    const backMs = plan.incidents.reduce(
      (sum, { what }) => sum + (what.type === "clock-jump" ? Math.max(-what.byMs, 0) : 0),
      0,
    );
    const endMs = world.nowMs + longestMs + backMs;
    await this.until(() => world.nowMs >= endMs || this.atRest());
    this.ensureAtRest();
    await this.closeBooks();
  }

  /** Kept or not, sums of usage are the same. */
  private async closeBooks(): Promise<void> {
    for (const question of this.plan.questions) await this.ask(question);
    // Some are in the kept sums by now, perhaps, and may go; then all are.
    await this.archive();
    for (const question of this.plan.questions) await this.ask(question, true);
    await this.addUp();
    for (const question of this.plan.questions) await this.ask(question, true);
    await this.operate("verify", { against: [], listHeads: false });
    await this.archive();
    for (const question of this.plan.questions) await this.ask(question, true);
    await this.operate("verify", { against: [], listHeads: false });
    if (this.failure !== null) throw this.failure;
  }

  private async ask(question: PlannedQuestion, archived = false): Promise<void> {
    const { lastEndedMs } = this.tables.model;
    const asked = questionAt(question, lastEndedMs ?? this.world.wallMs());
    if (!archived || !isOfReceipts(asked)) await this.operate("pageUsage", asked);
  }

  /** Receipts leave, of which no call can come any more; budgets without an end still count them. */
  private async archive(): Promise<void> {
    for (const { id: accountId, keys } of this.plan.accounts) {
      const order = { accountId, beforeMs: this.world.wallMs() + longestMs };
      await this.operate("checkpoint", order);
      const [read] = await this.operate("readArchivable", order);
      if (read?.ok !== true) continue;
      const { lines, ...batch } = read.value as unknown as ArchiveBatch;
      if (lines.length === 0) continue;
      const file = { name: "receipts.jsonl", after: batch.after, from: batch.from };
      await this.operate("archiveReceipts", { ...order, batch, file });
      const budget = { amountNanos: 10n ** 15n, period: "total", timezone: "UTC" };
      for (const { id } of keys) await this.operate("changeKey", { id, budget });
    }
  }

  private async addUp(): Promise<void> {
    await this.operate("findUnsummed", "");
    await this.operate("keepUsage", { accountIds: this.plan.accounts.map(({ id }) => id) });
  }

  private async until(done: () => boolean): Promise<void> {
    const { world } = this;
    while (!done()) {
      if (!(await world.step())) return;
      while (this.waiting.length > 0) {
        const incident = this.waiting.shift();
        if (incident !== undefined) await this.happen(incident);
      }
      if (this.failure !== null) throw this.failure;
      ensure(world.steps < stepsMax, "a run ends", () => `${String(stepsMax)} steps`);
    }
  }

  private async openAccounts(): Promise<void> {
    this.operator = await this.store.openProcess("operator", () => true);
    for (const account of this.plan.accounts) {
      const { creditNanos, id } = account;
      await this.operate("createAccount", { id, name: id, creditNanos });
      const { lowNanos: lowBalanceNanos } = account;
      if (lowBalanceNanos !== null) await this.operate("changeAccount", { id, lowBalanceNanos });
      if (account.grant !== null)
        await this.operate("changeAccount", { id, grant: { ...account.grant, every: "day" } });
      for (const key of account.keys)
        await this.operate("createKey", {
          id: key.id,
          accountId: id,
          name: key.id,
          secretHash: secretHashOf(key.presented),
          ...(key.budget === null ? {} : { budget: key.budget }),
        });
    }
    for (const what of this.plan.prices) await this.changePrices(what);
  }

  private async changePrices(what: PriceHappening): Promise<void> {
    const { argument, name } = priceCallOf(what, this.world.wallMs());
    await this.operate(name as StoreCall["name"], argument);
  }

  /** What an operator's command does, in a process of its own. */
  private async operate(
    name: StoreCall["name"],
    argument: unknown,
  ): Promise<readonly StoreAnswer[]> {
    const call = { name, argument, nowMs: this.world.wallMs() } as unknown as StoreCall;
    const { operator } = this;
    if (operator === null) throw new Error("no operator yet");
    return this.execute(operator, [call], null);
  }

  private async execute(
    execute: Execute,
    sent: readonly StoreCall[],
    by: Process | null,
  ): Promise<readonly StoreAnswer[]> {
    const { store, world } = this;
    const looks = by !== null && sent.some(({ name }) => name === "giveBackDead");
    const heard = !looks || this.presence.look(by, world.nowMs);
    const nowMs = world.wallMs();
    const calls = store.clock === "caller" ? sent : sent.map((call) => ({ ...call, nowMs }));
    try {
      const pending = execute(calls);
      const answers = toldWhetherHeard(calls, await pending, heard);
      for (const [index, call] of calls.entries())
        world.note(() => `            = ${answerText(call, answers[index])}`);
      await this.tables.check(by?.name ?? "operator", calls, answers);
      if (calls.some(({ name }) => name === "expire" || name === "giveBackDead"))
        this.ensureExpiriesDue();
      return answers;
    } catch (error) {
      this.fail(error);
      throw error;
    }
  }

  /** Expiry is for processes that died: one that lives, renews and hears its answers keeps what it reserved. */
  private ensureExpiriesDue(): void {
    for (const id of this.tables.model.expiredLast) {
      this.lostAtMs.set(id, this.world.nowMs);
      const story = this.stories.get(id);
      if (story === undefined || story.notAdmitted || this.clockJumped || this.wasLongAway)
        continue;
      const { alive, disturbed, name } = story.servedBy;
      ensure(
        !alive || disturbed,
        "a reservation of a living process does not expire",
        () => `${id} of ${name}`,
      );
    }
  }

  /** Nothing runs on after its slot was given to others, unless the process could not know. */
  private ensureStillHeld(id: string): void {
    const reservation = this.tables.model.reservations.get(id);
    const process = this.stories.get(id)?.servedBy;
    if (reservation?.state !== "expired" || this.clockJumped || process === undefined) return;
    if (process.disturbed && !this.shouldKnow(id, process)) return;
    this.fail(new Violation("nothing is delivered after its lease has ended", id));
  }

  /** What a process has lost that lives and reaches its store it learns at its next look, and cancels. */
  private shouldKnow(id: string, { frozenUntilMs, stopped }: Process): boolean {
    if (stopped || this.plan.weather > 0 || this.away.length > 0 || this.wasAway) return false;
    const lostAtMs = Math.max(this.lostAtMs.get(id) ?? Infinity, frozenUntilMs);
    return this.world.nowMs > lostAtMs + deadAskMs + slackMs;
  }

  private async start(slot: number): Promise<void> {
    const { plan, world } = this;
    this.lives += 1;
    const process: Process = {
      name: `replica ${String(slot + 1)}.${String(this.lives)}`,
      alive: true,
      frozenUntilMs: 0,
      disturbed: false,
      stopped: false,
      unheardUntilMs: null,
      suspendedMs: 0,
      suspendedUntilMs: 0,
    };
    this.presence.add(process);
    const execute = await this.store.openProcess(process.name, (owner) =>
      this.presence.isHeard(owner),
    );
    world.note(() => `${process.name}  starts`);
    this.replicas[slot] = new Replica({
      world,
      rules: plan.rules,
      process,
      client: openStoreLink({
        world,
        replica: process,
        execute: (calls) => this.execute(execute, calls, process),
        inOrder: this.store.inOrder,
        fault: (call) => this.faultOf(call, slot),
        onSent: (call) => {
          this.sent(call);
        },
        onDone: (call) => {
          this.phaseOf(call, "done");
        },
      }),
      fail: (violation) => {
        this.fail(violation);
      },
      onPhase: (request, phase) => {
        this.phase(request.id, phase);
      },
      chargedByModel: (id) => this.tables.model.reservations.get(id)?.charged ?? 0n,
      allowanceByModel: (id) => this.tables.model.reservations.get(id)?.allowance ?? null,
    });
  }

  private arrive(request: RequestPlan): void {
    const replica = this.replicas[request.replica];
    if (replica?.process.alive !== true) return;
    const story: Story = {
      plan: request,
      servedBy: replica.process,
      said: {
        accepted: false,
        deltas: 0,
        counted: 0,
        runningInput: null,
        runningOutput: null,
        ending: null,
      },
      stoppedBy: null,
      told: null,
      settledFromMs: null,
      notAdmitted: false,
    };
    this.world.note(() => `client      ${request.id} arrives at ${replica.process.name}`);
    this.stories.set(request.id, story);
    this.world.after(0, `${request.id} read`, replica.process, () => {
      void replica.serve(story).catch((error: unknown) => {
        this.fail(error);
      });
    });
  }

  private sent(call: StoreCall): void {
    if (call.name === "settle") {
      const settlement = call.argument as Parameters<typeof ensureCharge>[1] & {
        requestId: string;
      };
      const story = this.stories.get(settlement.requestId);
      try {
        if (story !== undefined) {
          story.settledFromMs ??= this.world.nowMs;
          ensureCharge(story, settlement);
        }
      } catch (error) {
        this.fail(error);
      }
    }
    this.phaseOf(call, "sent");
  }

  private phaseOf(call: StoreCall, moment: "sent" | "done"): void {
    if (call.name !== "admit" && call.name !== "settle") return;
    this.phase((call.argument as { requestId: string }).requestId, `${call.name}-${moment}`);
  }

  /** Incidents that wait for this moment happen before the next step. */
  private phase(requestId: string, phase: Phase): void {
    if (phase === "output") this.ensureStillHeld(requestId);
    for (const incident of this.plan.incidents) {
      const { when } = incident;
      if (!("phase" in when) || when.requestId !== requestId || when.phase !== phase) continue;
      if (this.fired.has(incident) || this.calm) continue;
      this.fired.add(incident);
      this.world.note(() => `now         ${requestId} ${phase}:`);
      this.waiting.push(incident);
    }
  }

  private async happen({ what }: Incident): Promise<void> {
    const { world } = this;
    world.note(() => `incident    ${describe(what)}`);
    switch (what.type) {
      case "credit":
        await this.operate("creditAccount", {
          id: what.accountId,
          amountNanos: what.nanos,
          note: null,
        });
        return;
      case "takeback": {
        const { balance, held } = this.tables.model.account(what.accountId);
        const amount = ((balance - held) * BigInt(what.percent)) / 100n;
        if (amount > 0n)
          await this.operate("creditAccount", {
            id: what.accountId,
            amountNanos: -amount,
            note: null,
          });
        return;
      }
      case "top-up": {
        const { accountId: id, nanos: amountNanos, reference } = what;
        await this.operate("creditAccount", { id, amountNanos, note: null, reference });
        return;
      }
      case "credit-once":
        await this.operate("creditAccount", onceCallOf(what));
        return;
      case "refund": {
        const { charged = 0n, account: id = null } =
          this.tables.model.reservations.get(what.requestId) ?? {};
        const amountNanos = (charged * BigInt(what.percent)) / 100n;
        if (id === null || amountNanos === 0n) return;
        const facts = { kind: "refund", receipt: what.requestId, note: null };
        await this.operate("creditAccount", { id, amountNanos, ...facts });
        return;
      }
      case "revoke":
        await this.operate("revokeKey", { id: what.keyId });
        return;
      case "disable":
      case "enable":
        await this.operate("setAccountStatus", {
          id: what.accountId,
          status: what.type === "enable" ? "active" : "disabled",
        });
        return;
      case "grant": {
        const grant = what.grant === null ? null : { ...what.grant, every: "day" };
        await this.operate("changeAccount", { id: what.accountId, grant });
        return;
      }
      case "budget":
        await this.operate("changeKey", { id: what.keyId, budget: what.budget });
        return;
      case "cancel":
        await this.operate("cancelGeneration", { requestId: what.requestId });
        this.watchCancelled(what.requestId);
        return;
      case "add-up":
        await this.addUp();
        return;
      case "usage":
        await this.ask(what.question);
        return;
      case "look":
        await this.operate("isGrantDue", what.accountId);
        await this.operate("payGrants", { accountId: what.accountId });
        return;
      case "announce":
        await this.operate("noteExpiringKeys", {});
        return;
      case "leave":
        this.replicas[this.slotOf(what.requestId)]?.leave(what.requestId);
        return;
      case "prices-made":
      case "prices-changed":
      case "list-given":
        await this.changePrices(what);
        return;
      case "limit":
      case "change-key":
      case "rotate":
        await this.changePolicy(what);
        return;
      case "to-the-line": {
        const { balance, held } = this.tables.model.account(what.accountId);
        const amountNanos = what.lowNanos - balance;
        if (amountNanos !== 0n && what.lowNanos >= held)
          await this.operate("creditAccount", { id: what.accountId, amountNanos, note: null });
        return;
      }
      case "give-out":
        this.givenOut += 1;
        await this.operate("takeDesk", {
          holder: what.holder,
          seed: `seed${String(this.givenOut)}x`,
        });
        return;
      case "clock-jump":
        world.jumpedMs += what.byMs;
        this.clockJumped = true;
        this.tables.model.clockJumped = true;
        return;
      case "store-away":
        this.away.push({ ...what, untilMs: world.nowMs + what.forMs });
        this.wasAway = true;
        this.wasLongAway ||= what.forMs > 10_000;
        return;
      case "crash":
      case "drain":
      case "freeze":
      case "suspend":
      case "unheard":
        this.happenTo(what);
        return;
      default:
        what satisfies never;
    }
  }

  private slotOf(requestId: string): number {
    const process = this.stories.get(requestId)?.servedBy;
    return this.replicas.findIndex((replica) => replica?.process === process);
  }

  /** A process that lives and reaches its store ends what was cancelled within a third of a lease. */
  private watchCancelled(id: string): void {
    const { plan, world } = this;
    const reservation = this.tables.model.reservations.get(id);
    if (reservation?.cancelled !== true) return;
    const withinMs = plan.rules.leaseMs / 3 + slackMs;
    world.after(withinMs, `${id} has ended`, null, () => {
      const story = this.stories.get(id);
      if (story === undefined || story.servedBy.disturbed || !story.servedBy.alive) return;
      if (plan.weather > 0 || this.wasAway || story.notAdmitted) return;
      const ended = story.stoppedBy !== null || story.said.ending !== null;
      if (!ended)
        this.fail(new Violation("a cancelled request ends within a third of a lease", id));
    });
  }

  private async changePolicy(what: PolicyChange): Promise<void> {
    switch (what.type) {
      case "limit":
        await this.operate("changeAccount", {
          id: what.accountId,
          limits: what.limits,
          ...this.madeFor(what, this.tables.model.account(what.accountId).version),
        });
        return;
      case "change-key": {
        const { expiresInMs, ...patch } = what.patch;
        const expiry =
          expiresInMs === undefined
            ? {}
            : { expiresAtMs: expiresInMs === null ? null : this.world.wallMs() + expiresInMs };
        const version = this.tables.model.keys.get(what.keyId)?.version ?? 0;
        const by = this.madeFor(what, version);
        await this.operate("changeKey", { id: what.keyId, ...patch, ...expiry, ...by });
        return;
      }
      case "rotate": {
        const keys = this.plan.accounts.flatMap((account) => account.keys);
        const presented = keys.find(({ id }) => id === what.keyId)?.presented ?? "";
        const rotations = (this.rotations.get(what.keyId) ?? 0) + 1;
        this.rotations.set(what.keyId, rotations);
        await this.operate("rotateKey", {
          id: what.keyId,
          secretHash: secretHashOf(secretOf(presented, rotations)),
          overlapMs: what.overlapMs,
          rotationId: String(rotations),
        });
        return;
      }
      default:
        what satisfies never;
    }
  }

  /** Changes may be for the version that an operator has seen. */
  private madeFor(
    { versionsLate }: PolicyChange & { readonly versionsLate?: number | null },
    version: number,
  ): object {
    if (versionsLate === undefined) return {};
    const ifVersion = versionsLate === null ? null : version - versionsLate;
    return { by: { actor: "oper_simulated", once: null, ifVersion } };
  }

  private happenTo(what: Extract<Happening, { readonly replica: number }>): void {
    const { world } = this;
    const slot = what.replica;
    const replica = this.replicas[slot];
    if (replica?.process.alive !== true) return;
    replica.process.disturbed = true;
    if (what.type === "suspend") {
      world.suspend(replica.process, what.forMs);
      return;
    }
    if (what.type === "unheard") {
      replica.process.unheardUntilMs = world.nowMs + what.forMs;
      return;
    }
    replica.process.stopped = true;
    if (what.type === "freeze") {
      replica.process.frozenUntilMs = Math.max(
        replica.process.frozenUntilMs,
        world.nowMs + what.forMs,
      );
      return;
    }
    if (what.type === "crash") {
      replica.process.alive = false;
    } else {
      replica.drain();
      world.after(2_000, "drained", replica.process, () => {
        void replica.close();
      });
    }
    if (what.restartAfterMs === null) return;
    const delayMs = what.restartAfterMs + (what.type === "drain" ? 3_000 : 0);
    world.after(delayMs, `restart ${String(slot)}`, null, async () => {
      if (this.replicas[slot]?.process.alive === true) return;
      await this.start(slot);
    });
  }

  private faultOf(call: StoreCall, slot: number): CallFault {
    if (this.calm) return "none";
    const { draws, nowMs } = this.world;
    const away = this.away.find(
      ({ from, untilMs }) => nowMs < untilMs && (from === null || from === slot),
    );
    if (away !== undefined) return away.repliesOnly ? "reply-lost" : "request-lost";
    const planned = this.plannedFault(call);
    if (planned !== "none") return planned;
    this.calls += 1;
    const label = `weather ${call.name} ${String(this.calls)}`;
    if (!draws.chance(label, this.plan.weather)) return "none";
    const faults = ["request-lost", "reply-lost", "slow", "twice"] as const;
    const fault = faults[draws.between(`${label} kind`, 0, 3)] ?? "none";
    // A ticket is taken anew by every authorize; nothing promises that it could be done twice.
    return fault === "twice" && call.name === "authorize" ? "none" : fault;
  }

  private plannedFault(call: StoreCall): CallFault {
    if (call.name !== "admit" && call.name !== "settle") return "none";
    const { requestId } = call.argument as { requestId: string };
    const request = this.stories.get(requestId)?.plan;
    if (call.name === "admit") return request?.admitFault ?? "none";
    const before = this.tries.get(requestId) ?? 0;
    this.tries.set(requestId, before + 1);
    return request?.settleFaults[before] ?? "none";
  }

  /** From now on nothing goes wrong any more: replicas stand again, clients whose answers never end leave. */
  private async clear(): Promise<void> {
    this.calm = true;
    this.away = [];
    this.world.note(() => "from here on nothing goes wrong");
    // A suspension that has begun is part of its clock already.
    for (const replica of this.replicas)
      if (replica !== null) replica.process.frozenUntilMs = replica.process.suspendedUntilMs;
    if (!this.replicas.some((replica) => replica?.process.alive === true)) await this.start(0);
  }

  private atRest(): boolean {
    const { model } = this.tables;
    if (this.world.nowMs < 1 || this.waitsForPlan()) return false;
    for (const reservation of model.reservations.values())
      if (reservation.state === "open") return false;
    for (const story of this.stories.values())
      if (story.told === null && story.servedBy.alive) return false;
    return true;
  }

  private waitsForPlan(): boolean {
    const { incidents, requests } = this.plan;
    const { nowMs } = this.world;
    return (
      requests.some(({ atMs }) => atMs >= nowMs) ||
      incidents.some(({ when }) => "atMs" in when && when.atMs >= nowMs)
    );
  }

  private ensureAtRest(): void {
    for (const [id, { state }] of this.tables.model.reservations)
      ensure(state !== "open", "every reservation is resolved in the end", () => id);
  }
}

/** What a replica gets to know of itself: a store that shares its process knows it from the lock that it keeps. */
function toldWhetherHeard(
  calls: readonly StoreCall[],
  answers: readonly StoreAnswer[],
  heard: boolean,
): readonly StoreAnswer[] {
  if (heard) return answers;
  return answers.map((answer, index) =>
    answer.ok && calls[index]?.name === "giveBackDead"
      ? { ok: true, value: { ...(answer.value as object), known: false } as never }
      : answer,
  );
}

function answerText(call: StoreCall, answer: StoreAnswer | undefined): string {
  return answer?.ok === false ? String(answer.error) : String(toldBy(call, answer));
}

function describe(what: Happening): string {
  if (what.type === "prices-made" || what.type === "prices-changed" || what.type === "list-given")
    return describePrices(what);
  const { type, ...rest } = what;
  return `${type} ${Object.entries(rest)
    .map(([name, value]) => `${name} ${String(name === "replica" ? Number(value) + 1 : value)}`)
    .join(", ")}`;
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Labels of a time of which only sums by day are left. */
function isOfReceipts({ by, keyId, sinceMs, timezone, untilMs }: UsageQuestion): boolean {
  // Of labels whole days are kept, of the rest whole quarters of an hour.
  const keptMs = by.includes("label") ? 86_400_000 : 900_000;
  const isWhole = [sinceMs, untilMs].every((atMs) => atMs === null || atMs % keptMs === 0);
  return (
    !isWhole || (by.includes("label") && (keyId !== null || timezone !== "UTC" || by.length > 1))
  );
}
