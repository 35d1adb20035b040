import type {
  ArgumentOf,
  OperationName,
  StoreAnswer,
  StoreCall,
  StoreClient,
} from "../../src/ledger/store-operations.ts";
import { arrivedCall } from "../../src/ledger/sqlite/thread-messages.ts";
import { StoreFault } from "../../src/ledger/store-fault.ts";
import type { CallFault } from "./plan.ts";
import type { SimulatedStore } from "./simulated-store.ts";
import type { Process, World } from "./world.ts";

/** What lies between a replica and its store. */
export interface LinkParts {
  readonly world: World;
  readonly replica: Process;
  /** Does the calls and looks at the tables. */
  readonly execute: (calls: readonly StoreCall[]) => Promise<readonly StoreAnswer[]>;
  /** As the store has it; a store that shares statements gets more calls together. */
  readonly inOrder: SimulatedStore["inOrder"];
  /** What becomes of this call; asked once a call. */
  readonly fault: (call: StoreCall) => CallFault;
  /** Called with every call as it is sent, and as it has been done. */
  readonly onSent: (call: StoreCall) => void;
  readonly onDone: (call: StoreCall) => void;
}

const companyMs = 100;

interface Waiting {
  readonly call: StoreCall;
  readonly label: string;
  readonly sentAtMs: number;
  answer(answer: StoreAnswer): void;
}

/** A store as a replica reaches it: slow, forgetful, but what it has committed is committed. */
export function openStoreLink(parts: LinkParts): StoreClient {
  const { replica, world } = parts;
  const waiting = new Set<Waiting>();
  let calls = 0;
  let closed = false;

  function latencyMs(label: string): number {
    const { draws } = world;
    return draws.chance(`${label} quick`, 0.5) ? 0 : draws.between(`${label} takes`, 1, 25);
  }

  /** Calls that are on their way together are sometimes done in one transaction, as a group commit does. */
  async function arrive(first: Waiting): Promise<void> {
    if (!waiting.delete(first)) return;
    const together = [first];
    if (world.draws.chance(`${first.label} group`, parts.inOrder === undefined ? 0.5 : 0.9))
      together.push(...waiting);
    for (const one of together) waiting.delete(one);
    const group = inOrder(together);
    world.note(() => `store       ${group.map(({ label }) => `does ${label}`).join(", ")}`);
    const answers = await parts.execute(
      group.map(({ call, sentAtMs }) => arrivedCall(call, world.nowMs - sentAtMs)),
    );
    for (const [index, one] of group.entries()) {
      const answer = answers[index];
      if (answer !== undefined) one.answer(answer);
      parts.onDone(one.call);
    }
  }

  function inOrder(together: readonly Waiting[]): readonly Waiting[] {
    if (parts.inOrder === undefined) return together;
    const byCall = new Map(together.map((one) => [one.call, one]));
    return parts
      .inOrder([...byCall.keys()])
      .map((call) => byCall.get(call))
      .filter((one) => one !== undefined);
  }

  /** What a store shares statements for arrives more often at one moment. */
  function arrivalMs(label: string, delayMs: number): number {
    if (parts.inOrder === undefined || !world.draws.chance(`${label} in company`, 0.85))
      return delayMs;
    const atMs = world.nowMs + delayMs;
    return Math.ceil(atMs / companyMs) * companyMs - world.nowMs;
  }

  function send(one: Waiting, delayMs: number): void {
    waiting.add(one);
    // Some stores live in the replica and die with it; others do what they were asked for whatever became of it. Only
    // who lives says so.
    const owned = one.call.name === "giveBackDead" || world.draws.chance(`${one.label} owned`, 0.5);
    const owner = owned ? replica : null;
    world.after(arrivalMs(one.label, delayMs), `${one.label} arrives`, owner, () => arrive(one));
  }

  function call(name: OperationName, argument: unknown): Promise<never> {
    if (closed) return Promise.reject(new StoreFault("unavailable", "closed"));
    if (!replica.alive) return new Promise(() => {});
    calls += 1;
    const label = `${replica.name} ${name}${requestOf(name, argument)} #${String(calls)}`;
    const sent = { name, argument, nowMs: world.wallMs() } as unknown as StoreCall;
    const fault = parts.fault(sent);
    if (fault !== "none") world.note(() => `store       ${label}: ${fault}`);
    return new Promise((resolve, reject) => {
      const reply = (settle: () => void): void => {
        const delayMs = latencyMs(`${label} reply`) + (fault === "slow" ? 400 : 0);
        world.after(delayMs, `${label} reply`, replica, settle);
      };
      const lose = (): void => {
        reply(() => {
          reject(new StoreFault("unavailable", "simulated: the answer was lost"));
        });
      };
      const answer = (given: StoreAnswer): void => {
        if (fault === "reply-lost") lose();
        else
          reply(() => {
            if (given.ok) resolve(given.value as never);
            else reject(given.error);
          });
      };
      if (fault === "request-lost") lose();
      else
        send(
          { call: sent, label, sentAtMs: world.nowMs, answer },
          latencyMs(label) + slowness(fault, label),
        );
      if (fault === "twice") {
        const again = {
          call: { ...sent },
          label: `${label} again`,
          sentAtMs: world.nowMs,
          answer: () => {},
        };
        send(again, world.draws.between(`${label} again`, 0, 3_000));
      }
      parts.onSent(sent);
    });
  }

  function slowness(fault: CallFault, label: string): number {
    return fault === "slow" ? world.draws.between(`${label} slow`, 100, 9_000) : 0;
  }

  return {
    call: <Name extends OperationName>(name: Name, argument: ArgumentOf<Name>) =>
      call(name, argument),
    [Symbol.asyncDispose]() {
      closed = true;
      return Promise.resolve();
    },
  };
}

/** The request a call is about, with a blank before it; "" for none. */
export function requestOf(name: OperationName, argument: unknown): string {
  return name === "admit" || name === "settle"
    ? ` ${(argument as { readonly requestId: string }).requestId}`
    : "";
}
