import { hash } from "node:crypto";
import type { AccountId, RequestId } from "../../src/ledger/scalars.ts";
import type { StoreAnswer, StoreCall } from "../../src/ledger/store-operations.ts";
import type { Sequence } from "./random.ts";
import { ensure } from "./violation.ts";

/** Credit that an operator moves under an idempotency key, and sends again and again. */
export interface CreditOnce {
  readonly type: "credit-once";
  readonly actor: `oper_${string}`;
  readonly key: string;
  readonly accountId: AccountId;
  readonly kind: "top_up" | "correction" | "refund";
  readonly nanos: bigint;
  readonly reference: string | null;
  /** Of a refund. */
  readonly receipt: RequestId | null;
}

interface OnceIncident {
  readonly when:
    | { readonly atMs: number }
    | { readonly requestId: RequestId; readonly phase: "admitted" | "settle-done" | "ended" };
  readonly what: CreditOnce;
}

/** Few keys, operators and bodies, so that they meet; a sequence of its own. */
export function creditsOnceOf(
  random: Sequence,
  requests: readonly { readonly id: RequestId; readonly accountId: AccountId }[],
  spanMs: number,
): OnceIncident[] {
  if (!random.chance(0.4)) return [];
  const bodies = Array.from({ length: random.between(1, 3) }, () => {
    const { accountId, id } = random.pick(requests);
    const kind = random.pick(["top_up", "correction", "refund"] as const);
    return {
      accountId,
      kind,
      nanos: random.pick(kind === "correction" ? [-901n, -902n] : [1n, 901n]),
      reference: random.pick([null, null, "pi_1"]),
      receipt: kind === "refund" ? id : null,
    };
  });
  return Array.from({ length: random.between(2, 7) }, () => {
    const phase = random.pick(["admitted", "settle-done", "ended"] as const);
    return {
      when: random.chance(0.6)
        ? { requestId: random.pick(requests).id, phase }
        : { atMs: random.between(0, spanMs + 30_000) },
      what: {
        type: "credit-once",
        actor: random.pick(["oper_one", "oper_one", "oper_two"] as const),
        key: random.pick(["k1", "k1", "k2"]),
        ...random.pick(bodies),
      },
    };
  });
}

/** As the operators' API asks the ledger. */
export function onceCallOf(what: CreditOnce): object {
  const { accountId: id, actor, key, kind, nanos: amountNanos, receipt, reference } = what;
  const body = JSON.stringify([kind, String(amountNanos), reference, receipt]);
  const once = {
    route: `POST /api/v1/accounts/${id}/credits`,
    key,
    bodyHash: new Uint8Array(hash("sha256", body, "buffer")),
  };
  return { id, amountNanos, kind, note: null, reference, receipt, by: { actor, once } };
}

/** Under which key a call is sent, and what: both as text; null: under none. */
export function onceOf({ argument }: StoreCall): { name: string; body: string } | null {
  const { by } = argument as {
    readonly by?: {
      readonly actor: string;
      readonly once: {
        readonly route: string;
        readonly key: string;
        readonly bodyHash: Uint8Array;
      } | null;
    };
  };
  if (by === undefined || by.once === null) return null;
  const { bodyHash, key, route } = by.once;
  return { name: `${by.actor} ${route} ${key}`, body: String(bodyHash) };
}

/** What calls under idempotency keys have been answered, whatever the model says. */
export class OnceLaw {
  private readonly entries = new Map<string, { readonly entry: string; readonly body: string }>();
  private readonly keys = new Map<string, string>();

  read(call: StoreCall, answer: StoreAnswer | undefined): void {
    const once = onceOf(call);
    if (once === null || answer?.ok !== true) return;
    const { body, name } = once;
    const { id, reference } = call.argument as { id: string; reference: string | null };
    const { entry: written } = answer.value as unknown as { entry: { sequence: number } };
    const entry = `${id} ${String(written.sequence)}`;
    const first = this.entries.get(name) ?? { entry, body };
    this.entries.set(name, first);
    ensure(first.body === body, "another body under an idempotency key is refused", () => name);
    ensure(first.entry === entry, "what is sent again under its key moves credit once", () => name);
    // What has a reference is one movement whatever it is sent under.
    if (reference !== null) return;
    const key = this.keys.get(entry) ?? name;
    this.keys.set(entry, key);
    ensure(
      key === name,
      "an idempotency key is one operator's on one route",
      () => `${entry} was written under ${key}, and answered under ${name}`,
    );
  }
}
