import type { WebhookBacklog } from "../ledger/administration/webhook-administration.ts";
import type { EventsLedger } from "../ledger/ledger-events.ts";
import type { DueDelivery } from "../ledger/webhook.ts";
import { limits } from "../limits.ts";
import type { Timers } from "../timers.ts";
import type { PostEvent } from "./post-event.ts";

/** What the deliverer works with. */
export interface DelivererParts {
  readonly ledger: EventsLedger;
  readonly post: PostEvent;
  /** This process, among those that deliver. */
  readonly holder: string;
  readonly timers: Timers;
  readonly monotonicMs: () => number;
  /** Whether the deployment is there; null: nothing is known. Never rejects. */
  readonly isDeploymentUp: () => Promise<boolean | null>;
  readonly telemetry: {
    lifecycle(event: string, fields: Readonly<Record<string, string>>): void;
    eventsGivenOut(types: readonly string[]): void;
  };
}

/** Gives out events and delivers them, as long as no other process does. Disposing it ends tries that are under way. */
export interface Deliverer extends AsyncDisposable {
  /** What was found by the last look at what waits; null: there was none yet. */
  readonly backlog: WebhookBacklog | null;
  /** Looks at once, and resolves when what it found to do is done or waits for its time. */
  look(): Promise<void>;
}

/** Begins to look for events. */
export function openDeliverer(parts: DelivererParts): Deliverer {
  const desk = new Desk(parts);
  const watch = every(limits.deskLookMs, parts.timers, () => desk.look());
  const tend = every(limits.eventsTendedMs, parts.timers, () => tendEvents(parts.ledger));
  const deployment = every(limits.deploymentLookMs, parts.timers, () => lookAtDeployment(parts));
  let backlog: WebhookBacklog | null = null;
  const waiting = every(limits.backlogLookMs, parts.timers, async () => {
    backlog = await parts.ledger.backlog();
  });
  return {
    get backlog() {
      return backlog;
    },
    look: () => desk.look(),
    async [Symbol.asyncDispose]() {
      await Promise.all([watch.stop(), tend.stop(), deployment.stop(), waiting.stop()]);
      await desk.leave();
    },
  };
}

/**
 * What this process has under way. A lane is what one webhook gets of one account: its events leave one after another, the
 * next one when the one before was tried.
 */
class Desk {
  private readonly parts: DelivererParts;
  private readonly lanes = new Map<string, Promise<void>>();
  private readonly toOne = new Map<string, number>();
  private readonly ending = new AbortController();
  private looking: Promise<void> | null = null;
  private lookAgain = false;
  private has = false;

  constructor(parts: DelivererParts) {
    this.parts = parts;
  }

  /** One look at a time; a wish that comes meanwhile is for one more. */
  look(): Promise<void> {
    if (this.ending.signal.aborted) return Promise.resolve();
    if (this.looking !== null) {
      this.lookAgain = true;
      return this.looking;
    }
    this.looking = this.lookOnce()
      // The ledger cannot be reached: the next look comes by itself.
      .catch(ignore)
      .finally(() => {
        this.looking = null;
        if (!this.lookAgain) return;
        this.lookAgain = false;
        void this.look();
      });
    return this.looking;
  }

  /** Ends what is under way, as failed tries that another process repeats, and gives the desk back. */
  async leave(): Promise<void> {
    this.ending.abort();
    await this.looking;
    await Promise.all(this.lanes.values());
    if (this.has) await this.parts.ledger.leaveDesk(this.parts.holder).catch(ignore);
  }

  private async lookOnce(): Promise<void> {
    const work = await this.parts.ledger.takeDesk(this.parts.holder);
    this.has = work !== null;
    if (work === null) return;
    this.parts.telemetry.eventsGivenOut(work.givenOut);
    if (this.ending.signal.aborted) return;
    for (const delivery of work.due) this.begin(delivery);
    if (work.more) this.lookAgain = true;
  }

  private begin(delivery: DueDelivery): void {
    const { event, webhookId } = delivery;
    const lane = `${webhookId} ${event.accountId ?? ""}`;
    const running = this.toOne.get(webhookId) ?? 0;
    if (this.lanes.has(lane) || running >= limits.webhookTriesToOneMax) return;
    if (this.lanes.size >= limits.webhookTriesAtOnceMax) return;
    this.toOne.set(webhookId, running + 1);
    const trying = this.attempt(delivery)
      // What the ledger did not take is tried again: the endpoint knows the event by its id.
      .catch(ignore)
      .finally(() => {
        this.lanes.delete(lane);
        this.toOne.set(webhookId, (this.toOne.get(webhookId) ?? 1) - 1);
        // The next event of the lane may be waiting.
        void this.look();
      });
    this.lanes.set(lane, trying);
  }

  private async attempt(delivery: DueDelivery): Promise<void> {
    const { event, tries, webhookId } = delivery;
    const { ledger, monotonicMs, post, telemetry } = this.parts;
    const beganMs = monotonicMs();
    const outcome = await post(delivery, this.ending.signal);
    // A try that this process cut off says nothing of the endpoint, and is not counted.
    if (this.ending.signal.aborted && !outcome.delivered) return;
    const durationMs = Math.round(monotonicMs() - beganMs);
    const { position } = event;
    const one = { webhookId, position, tries, durationMs, ...outcome };
    const { failing } = await ledger.finishTry(one);
    if (failing)
      telemetry.lifecycle("webhook failing", { webhook: webhookId, error: outcome.error ?? "" });
  }
}

async function tendEvents(ledger: EventsLedger): Promise<void> {
  await ledger.noteExpiringKeys();
  while (!(await ledger.forgetEvents()));
}

async function lookAtDeployment(parts: DelivererParts): Promise<void> {
  const up = await parts.isDeploymentUp();
  if (up !== null) await parts.ledger.noteDeployment(parts.holder, up);
}

/** Does something again and again, from one interval after it was done; what fails is done again with the next one. */
function every(
  intervalMs: number,
  timers: Timers,
  step: () => Promise<void>,
): { stop(): Promise<void> } {
  let stopped = false;
  let running: Promise<void> = Promise.resolve();
  const wait = (): unknown => timers.set(run, intervalMs);
  let timer = wait();
  function run(): void {
    running = step()
      .catch(ignore)
      .then(() => {
        if (!stopped) timer = wait();
      });
  }
  return {
    stop() {
      stopped = true;
      timers.clear(timer);
      return running;
    },
  };
}

function ignore(): void {}
