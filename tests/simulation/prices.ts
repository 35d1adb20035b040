import type { AccountId } from "../../src/ledger/scalars.ts";
import { openSequence, type Sequence } from "./random.ts";
import { ensure } from "./violation.ts";

/** Prices as a plan and the model have them: nanos for a million tokens. */
export interface TokenPrices {
  readonly input: bigint;
  /** null: as input. */
  readonly cached: bigint | null;
  readonly output: bigint;
}

/** Prices with the time from which they hold, after the moment at which they are made; null: from that moment. */
export interface PlannedPrices extends TokenPrices {
  readonly afterMs: number | null;
}

/** What an operator does with price lists. */
export type PriceHappening =
  | {
      readonly type: "prices-made";
      readonly list: string;
      readonly prices: readonly PlannedPrices[];
    }
  | {
      readonly type: "prices-changed";
      readonly list: string;
      readonly prices: readonly PlannedPrices[];
    }
  | { readonly type: "list-given"; readonly accountId: AccountId; readonly list: string };

const kinds: readonly TokenPrices[] = [
  { input: 1_000_000_000n, cached: 100_000_000n, output: 4_000_000_000n },
  { input: 333_333_333n, cached: 33_333_331n, output: 1_234_567_891n },
  { input: 70_000_001n, cached: 900_000_007n, output: 290_000_003n },
  { input: 2_000_000_003n, cached: null, output: 7_000_000_001n },
  { input: 999_999n, cached: 1n, output: 1n },
  { input: 0n, cached: 0n, output: 0n },
];
const lists = ["default", "team", "team"] as const;

/** Lists that are there from the begin, and who has them. */
export function openingPricesOf(
  seed: number,
  accounts: readonly { readonly id: AccountId }[],
): readonly PriceHappening[] {
  const random = openSequence(seed + 2_000_003);
  if (random.chance(0.4)) return [];
  const list = random.pick(lists);
  const made: PriceHappening[] = [
    { type: "prices-made", list, prices: [planned(random, null), ...laterOf(random)] },
  ];
  const given = accounts.filter(() => random.chance(0.8));
  return [
    ...made,
    ...given.map(({ id }) => ({ type: "list-given", accountId: id, list }) as const),
  ];
}

/** What an operator changes of them meanwhile. */
export function priceHappeningOf(random: Sequence, accountId: AccountId): PriceHappening {
  const list = random.pick(lists);
  const prices = random.chance(0.7) ? [planned(random, null)] : [];
  const later =
    prices.length === 0 ? [planned(random, random.between(1, 20_000))] : laterOf(random);
  return random.pick<PriceHappening>([
    { type: "prices-changed", list, prices: [...prices, ...later] },
    { type: "prices-changed", list, prices: [...prices, ...later] },
    { type: "prices-made", list, prices: [...prices, ...later] },
    { type: "list-given", accountId, list: random.pick(["default", "team", "team", "none"]) },
  ]);
}

function laterOf(random: Sequence): readonly PlannedPrices[] {
  return random.chance(0.5) ? [planned(random, random.pick([1, 2_000, 10_000, 40_000]))] : [];
}

function planned(random: Sequence, afterMs: number | null): PlannedPrices {
  return { afterMs, ...random.pick(kinds) };
}

/** What happens, in one line. */
export function describePrices(what: PriceHappening): string {
  if (what.type === "list-given") return `${what.accountId} gets ${what.list}`;
  const all = what.prices.map(
    (one) => `${textOf(one)} from ${one.afterMs === null ? "now" : `now + ${String(one.afterMs)}`}`,
  );
  return `${what.type} ${what.list}: ${all.join("; ")}`;
}

/** The call that does it, of an operator at that time. */
export function priceCallOf(
  what: PriceHappening,
  nowMs: number,
): { readonly name: string; readonly argument: unknown } {
  if (what.type === "list-given") {
    const { accountId: id, list: priceList } = what;
    return { name: "changeAccount", argument: { id, priceList } };
  }
  const prices = what.prices.map(({ afterMs, cached, input, output }) => ({
    effectiveFromMs: afterMs === null ? null : nowMs + afterMs,
    inputNanosPerMillion: input,
    ...(cached === null ? {} : { cachedInputNanosPerMillion: cached }),
    outputNanosPerMillion: output,
  }));
  return what.type === "prices-made"
    ? { name: "createPriceList", argument: { name: what.list, prices } }
    : { name: "changePriceList", argument: { name: what.list, prices } };
}

interface AskedPrices {
  readonly effectiveFromMs: number | null;
  readonly inputNanosPerMillion: bigint;
  readonly cachedInputNanosPerMillion?: bigint;
  readonly outputNanosPerMillion: bigint;
}

interface HeldPrices extends TokenPrices {
  readonly atMs: number;
}

/** Price lists as the contract tells of them, for the model. */
export class PriceBook {
  private readonly lists = new Map<string, readonly HeldPrices[]>();
  private readonly settings: TokenPrices;

  constructor(settings: TokenPrices) {
    this.settings = settings;
  }

  /** Makes a list; what it is answered with. */
  make(
    { name, prices }: { readonly name: string; readonly prices: readonly AskedPrices[] },
    nowMs: number,
  ): string {
    const held = prices.map((one) => heldOf(one, nowMs));
    if (name !== "default" && !held.some(({ atMs }) => atMs <= nowMs)) return "invalid_value";
    if (this.lists.has(name)) return "not_possible";
    this.lists.set(name, held);
    return "done";
  }

  /** Puts prices in the place of those to come; what it is answered with. */
  change(
    { name, prices }: { readonly name: string; readonly prices: readonly AskedPrices[] },
    nowMs: number,
  ): string {
    const list = this.lists.get(name);
    if (list === undefined) return "not_found";
    const begun = list.filter(({ atMs }) => atMs <= nowMs);
    const fresh = prices.map((one) => heldOf(one, nowMs));
    const again = fresh.filter(({ atMs }) => begun.some((one) => one.atMs === atMs));
    for (const one of again) {
      const there = begun.find(({ atMs }) => atMs === one.atMs);
      if (there === undefined || textOf(there) !== textOf(one)) return "not_possible";
    }
    this.lists.set(name, [...begun, ...fresh.filter((one) => !again.includes(one))]);
    return "done";
  }

  has(list: string): boolean {
    return list === "default" || this.lists.has(list);
  }

  /** What an account with this list pays at that time, and the name of the list; null: the settings. */
  at(
    list: string | null,
    nowMs: number,
  ): { readonly list: string | null; readonly prices: TokenPrices } {
    const name = list ?? "default";
    const inOrder = (this.lists.get(name) ?? []).toSorted((one, other) => one.atMs - other.atMs);
    const past = inOrder.filter(({ atMs }) => atMs <= nowMs).at(-1);
    // A clock that was set back to before the list was made: only `default` has the settings to go back to.
    const prices = past ?? (name === "default" ? undefined : inOrder[0]);
    ensure(
      name === "default" || prices !== undefined,
      "a list has a price at any time",
      () => name,
    );
    return prices === undefined ? { list: null, prices: this.settings } : { list: name, prices };
  }
}

function heldOf(asked: AskedPrices, nowMs: number): HeldPrices {
  return {
    atMs: asked.effectiveFromMs ?? nowMs,
    input: asked.inputNanosPerMillion,
    cached: asked.cachedInputNanosPerMillion ?? null,
    output: asked.outputNanosPerMillion,
  };
}

/** Prices in one line, for comparing. */
export function textOf({ cached, input, output }: TokenPrices): string {
  return `${String(input)} ${String(cached ?? input)} ${String(output)}`;
}

/** What tokens cost, in nanos: each at its price, the sum rounded up. */
export function costOf(
  tokens: { readonly input: number; readonly cached: number; readonly output: number },
  { cached: cachedPrice, input: inputPrice, output: outputPrice }: TokenPrices,
): bigint {
  const millionths =
    BigInt(tokens.input - tokens.cached) * inputPrice +
    BigInt(tokens.cached) * (cachedPrice ?? inputPrice) +
    BigInt(tokens.output) * outputPrice;
  const whole = millionths / 1_000_000n;
  return whole * 1_000_000n === millionths ? whole : whole + 1n;
}

/** What a reservation of so many tokens holds: whatever of the input turns out to be cached. */
export function holdOf(input: number, output: number, prices: TokenPrices): bigint {
  const none = costOf({ input, cached: 0, output }, prices);
  const all = costOf({ input, cached: input, output }, prices);
  return all > none ? all : none;
}
