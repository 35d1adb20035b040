import { cachedInputPrice, formatCredit, type Prices } from "../../admission/price.ts";
import { limits } from "../../limits.ts";
import { OperatorError } from "../operator-error.ts";
import { defaultPriceList, pricesOf } from "../price-list.ts";
import { numberOf, type Row, textOf } from "../row.ts";
import { audit } from "./audit.ts";
import { type ChangeContext, ensureVersion } from "./changed-by.ts";
import { ask, askOne, type Steps } from "./steps.ts";

/** What a list charges from a time on, until its next price. */
export interface DatedPrices extends Prices {
  /** Milliseconds since 1970. */
  readonly effectiveFromMs: number;
}

/** A price list; its prices in the order of the times from which they hold. */
export interface PriceList {
  readonly name: string;
  /** Goes up with each change; 0: it is the prices of the settings. */
  readonly version: number;
  /** null: it is the prices of the settings. */
  readonly createdAtMs: number | null;
  readonly prices: readonly AskedPrices[];
}

interface KeptPriceList extends PriceList {
  readonly prices: readonly DatedPrices[];
}

/** Prices that are asked for; `effectiveFromMs` null: from now on, and of the settings always. */
export interface AskedPrices extends Prices {
  readonly effectiveFromMs: number | null;
}

const columns = "name, version, created_at_ms";
const priceColumns =
  "list, effective_from_ms, input_nanos_per_million, cached_input_nanos_per_million, output_nanos_per_million";

/** Lists by their names, after `after`; `default` is among them, as the settings where the ledger has none of that name. */
export function* pagePriceLists(order: {
  readonly after: string | null;
  readonly rowsMax: number;
  readonly settings: Prices;
}): Steps<readonly PriceList[]> {
  const { after, rowsMax, settings } = order;
  const rows = yield* ask(
    `select ${columns} from tributary.price_list where name > $1 order by name limit ${String(rowsMax)}`,
    after ?? "",
  );
  const names = rows.map((row) => textOf(row, "name"));
  const prices = yield* ask(
    `select ${priceColumns} from tributary.price where list >= $1 and list <= $2 order by list, effective_from_ms`,
    names[0] ?? "",
    names.at(-1) ?? "",
  );
  const lists: readonly PriceList[] = rows.map((row) => {
    const name = textOf(row, "name");
    return listOf(
      row,
      prices.filter((price) => textOf(price, "list") === name),
    );
  });
  const isBefore = after !== null && defaultPriceList <= after;
  if (isBefore || (yield* findList(defaultPriceList)) !== null) return lists;
  const at = names.filter((name) => name < defaultPriceList).length;
  return lists.toSpliced(at, 0, listOfSettings(settings)).slice(0, rowsMax);
}

/** One list; throws an OperatorError where there is none of that name. */
export function* showPriceList(order: {
  readonly name: string;
  readonly settings: Prices;
}): Steps<PriceList> {
  const list = yield* findList(order.name);
  if (list !== null) return list;
  if (order.name === defaultPriceList) return listOfSettings(order.settings);
  throw unknownPriceList(order.name);
}

/** Makes a list. One of its prices has to hold now; of `default`, where the settings hold until then, none has to. */
export function* createPriceList(
  order: { readonly name: string; readonly prices: readonly AskedPrices[] },
  context: ChangeContext,
): Steps<PriceList> {
  const { name } = order;
  ensureListName(name);
  const prices = dated(order.prices, context.nowMs);
  if (name !== defaultPriceList && !prices.some((price) => hasBegun(price, context)))
    throw invalid(
      "`prices` has none that holds now. Leave `effective_from` out of one: it then holds from now on.",
    );
  const made = yield* askOne(
    `insert into tributary.price_list (name, version, created_at_ms) values ($1, 1, $2)
     on conflict do nothing returning ${columns}`,
    name,
    context.nowMs,
  );
  if (made === null)
    throw new OperatorError(
      "not_possible",
      `There is a price list ${JSON.stringify(name)} already. Change it, or give another name.`,
      { param: "name" },
    );
  for (const price of prices) yield* insertPrice(name, price);
  yield* audit(context, {
    action: "price_list.create",
    target: name,
    before: null,
    after: { prices: describePrices(prices) },
  });
  return { name, version: 1, createdAtMs: context.nowMs, prices };
}

/** Puts `prices` in the place of all that have not begun. Those that have begun stay, and may be among `prices` as they are. */
export function* changePriceList(
  order: { readonly name: string; readonly prices: readonly AskedPrices[] | null },
  context: ChangeContext,
): Steps<PriceList> {
  const { name } = order;
  const row = yield* askOne(
    `select ${columns} from tributary.price_list where name = $1 for no key update`,
    name,
  );
  if (row === null) throw unknownPriceList(name);
  const before = yield* withPrices(row);
  ensureVersion(before.version, context);
  if (order.prices === null) return before;
  const begun = before.prices.filter((price) => hasBegun(price, context));
  const asked = dated(order.prices, context.nowMs);
  const fresh = asked.filter((price) => {
    const there = begun.find((one) => one.effectiveFromMs === price.effectiveFromMs);
    if (there !== undefined && describePrice(there) === describePrice(price)) return false;
    if (there !== undefined || price.effectiveFromMs < context.nowMs)
      throw new OperatorError(
        "not_possible",
        `${timeText(price.effectiveFromMs)} is in the past: a price that has begun is neither changed nor added. Leave \`effective_from\` out to change the prices from now on.`,
        { param: "prices" },
      );
    return true;
  });
  const after = { ...before, version: before.version + 1, prices: [...begun, ...fresh] };
  ensureCount(after.prices);
  if (describePrices(before.prices) === describePrices(after.prices)) return before;
  yield* ask(
    "delete from tributary.price where list = $1 and effective_from_ms > $2",
    name,
    context.nowMs,
  );
  for (const price of fresh) yield* insertPrice(name, price);
  yield* ask("update tributary.price_list set version = version + 1 where name = $1", name);
  yield* audit(context, {
    action: "price_list.change",
    target: name,
    before: { prices: describePrices(before.prices) },
    after: { prices: describePrices(after.prices) },
  });
  return after;
}

/** Throws where accounts cannot have this list: there is none of that name. `default` there is always. */
export function* ensurePriceList(name: string): Steps<void> {
  if (name !== defaultPriceList && (yield* findList(name)) === null)
    throw unknownPriceList(name, "price_list");
}

/** From when `default` is the ledger's own, in milliseconds since 1970; null: it is the prices of the settings. */
export function beginOfDefault({ createdAtMs, prices }: PriceList): number | null {
  return createdAtMs === null ? null : (prices[0]?.effectiveFromMs ?? null);
}

function* findList(name: string): Steps<KeptPriceList | null> {
  const row = yield* askOne(`select ${columns} from tributary.price_list where name = $1`, name);
  return row === null ? null : yield* withPrices(row);
}

function* withPrices(row: Row): Steps<KeptPriceList> {
  const prices = yield* ask(
    `select ${priceColumns} from tributary.price where list = $1 order by effective_from_ms`,
    textOf(row, "name"),
  );
  return listOf(row, prices);
}

function* insertPrice(list: string, price: DatedPrices): Steps<void> {
  yield* ask(
    `insert into tributary.price (${priceColumns}) values ($1, $2, $3, $4, $5)`,
    list,
    price.effectiveFromMs,
    price.inputNanosPerMillion,
    price.cachedInputNanosPerMillion ?? null,
    price.outputNanosPerMillion,
  );
}

function listOf(row: Row, prices: readonly Row[]): KeptPriceList {
  return {
    name: textOf(row, "name"),
    version: numberOf(row, "version"),
    createdAtMs: numberOf(row, "created_at_ms"),
    prices: prices.map((price) => ({
      effectiveFromMs: numberOf(price, "effective_from_ms"),
      ...pricesOf(price),
    })),
  };
}

function listOfSettings(settings: Prices): PriceList {
  const prices = [{ effectiveFromMs: null, ...settings }];
  return { name: defaultPriceList, version: 0, createdAtMs: null, prices };
}

/** In the order of their times, each with one; throws where they cannot be. */
function dated(asked: readonly AskedPrices[], nowMs: number): readonly DatedPrices[] {
  ensureCount(asked);
  const prices = asked
    .map((price) => ({ ...price, effectiveFromMs: price.effectiveFromMs ?? nowMs }))
    .toSorted((one, other) => one.effectiveFromMs - other.effectiveFromMs);
  for (const [at, price] of prices.entries()) {
    if (prices[at + 1]?.effectiveFromMs === price.effectiveFromMs)
      throw invalid(
        `\`prices\` has two with the same \`effective_from\`, ${timeText(price.effectiveFromMs)}. Leave one out.`,
      );
    ensurePrice(price);
  }
  return prices;
}

function ensureCount(prices: readonly unknown[]): void {
  if (prices.length === 0) throw invalid("`prices` is empty: a list has one price at least.");
  if (prices.length > limits.pricesOfListMax)
    throw invalid(
      `A list has at most ${String(limits.pricesOfListMax)} prices, also those in the past. Make another list, and give it to the accounts.`,
    );
}

function ensurePrice(price: Prices): void {
  const all = [price.inputNanosPerMillion, cachedInputPrice(price), price.outputNanosPerMillion];
  if (all.every((nanos) => nanos >= 0n && nanos <= limits.priceNanosMax)) return;
  throw invalid(
    `A price is 0 to ${formatCredit(limits.priceNanosMax)} credits for a million tokens.`,
  );
}

// In paths of the API and in words of commands: nothing that has to be written there in another way.
function ensureListName(name: string): void {
  if (/^[\p{L}\p{N}][\p{L}\p{N} ._-]*$/u.test(name) && name.length <= limits.priceListNameMax)
    return;
  throw invalid(
    `The name of a price list has 1 to ${String(limits.priceListNameMax)} letters, digits, spaces, dots, hyphens and underscores, and begins with a letter or digit.`,
    "name",
  );
}

function hasBegun(
  price: { readonly effectiveFromMs: number | null },
  { nowMs }: ChangeContext,
): boolean {
  return price.effectiveFromMs !== null && price.effectiveFromMs <= nowMs;
}

function describePrices(
  prices: readonly (Prices & { readonly effectiveFromMs: number | null })[],
): string {
  return prices
    .map((price) => `from ${timeText(price.effectiveFromMs)}: ${describePrice(price)}`)
    .join("; ");
}

function describePrice(price: Prices): string {
  return `input ${formatCredit(price.inputNanosPerMillion)}, cached input ${formatCredit(cachedInputPrice(price))}, output ${formatCredit(price.outputNanosPerMillion)}`;
}

function timeText(atMs: number | null): string {
  return atMs === null ? "the start" : new Date(atMs).toISOString();
}

function invalid(message: string, param = "prices"): OperatorError {
  return new OperatorError("invalid_value", message, { param });
}

function unknownPriceList(name: string, param = "name"): OperatorError {
  return new OperatorError(
    "not_found",
    name === defaultPriceList
      ? "The price list `default` is the prices of the settings as long as the ledger has none of that name. Make it first."
      : `There is no price list ${JSON.stringify(name)}. \`tributary price list\` shows those that there are.`,
    { param },
  );
}
