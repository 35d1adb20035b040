import { formatCredit, parseCredit, type Prices } from "../admission/price.ts";
import type { AskedPrices, PriceList } from "../ledger/administration/price-administration.ts";
import { priceListToJson } from "../ledger/price-list-json.ts";
import type { StoreLedger } from "../ledger/store-ledger.ts";
import { limits } from "../limits.ts";
import { CommandError, misuse, type Outcome, type Shell } from "./command.ts";
import { withLedger } from "./open-ledger.ts";
import { readFutureTime, readTime } from "./read-time.ts";
import { formatTable } from "./text-table.ts";

interface PriceOptions {
  readonly input: string;
  readonly cachedInput?: string | undefined;
  readonly output: string;
  readonly from?: string | undefined;
}

/** `price list` */
export function listPriceLists(shell: Shell): Promise<Outcome> {
  return withPrices(shell, async (ledger, settings) => {
    const lists: PriceList[] = [];
    for (let after: string | null = null; ; after = lists.at(-1)?.name ?? null) {
      const rowsMax = limits.pageRowsMax;
      const page = await ledger.pagePriceLists({ after, rowsMax, settings });
      lists.push(...page);
      if (page.length < rowsMax) break;
    }
    return {
      json: lists.map(priceListToJson),
      text: formatTable([heads, ...lists.flatMap(cells)]),
    };
  });
}

/** `price show` */
export function showPriceList(shell: Shell, name: string): Promise<Outcome> {
  return withPrices(shell, async (ledger, settings) =>
    one(await ledger.showPriceList({ name, settings })),
  );
}

/** `price create` */
export async function createPriceList(
  shell: Shell,
  name: string,
  options: PriceOptions,
): Promise<Outcome> {
  const prices = [readPrices(options)];
  return withPrices(shell, async (ledger) => one(await ledger.createPriceList({ name, prices })));
}

/** `price change` */
export async function changePriceList(
  shell: Shell,
  name: string,
  options: PriceOptions,
): Promise<Outcome> {
  const given = readPrices(options);
  return withPrices(shell, async (ledger) =>
    one(
      await changeToCome(ledger, name, (prices) => [
        ...prices.filter(({ effectiveFromMs }) => effectiveFromMs !== given.effectiveFromMs),
        given,
      ]),
    ),
  );
}

/** `price remove` */
export async function removePrices(
  shell: Shell,
  name: string,
  options: { readonly from: string },
): Promise<Outcome> {
  const atMs = readTime(options.from, "--from", Date.now());
  return withPrices(shell, async (ledger) => {
    const changed = await changeToCome(ledger, name, (prices) => {
      const left = prices.filter(({ effectiveFromMs }) => effectiveFromMs !== atMs);
      if (left.length < prices.length) return left;
      const time = new Date(atMs).toISOString();
      throw new CommandError(
        "not_found",
        1,
        `${name} has no prices from ${time} on. \`tributary price show ${JSON.stringify(name)}\` shows from when its prices hold.`,
      );
    });
    return one(changed);
  });
}

/** Changes a list as it is now: of two commands at once the second is refused. */
async function changeToCome(
  ledger: StoreLedger,
  name: string,
  change: (prices: readonly AskedPrices[]) => readonly AskedPrices[],
): Promise<PriceList> {
  const free = { inputNanosPerMillion: 0n, outputNanosPerMillion: 0n };
  const { prices, version } = await ledger.showPriceList({ name, settings: free });
  // Of a list that is the settings the ledger says what to do.
  if (version === 0) return ledger.changePriceList({ name, prices: null, version: null });
  return ledger.changePriceList({ name, prices: change(prices), version });
}

function withPrices(
  shell: Shell,
  use: (ledger: StoreLedger, settings: Prices) => Promise<Outcome>,
): Promise<Outcome> {
  return withLedger(shell, (ledger, _place, { prices }) => use(ledger, prices));
}

function readPrices({ cachedInput, from, input, output }: PriceOptions): AskedPrices {
  return {
    effectiveFromMs: from === undefined ? null : readFutureTime(from, "--from", Date.now()),
    inputNanosPerMillion: readPrice(input, "--input"),
    ...(cachedInput === undefined
      ? {}
      : { cachedInputNanosPerMillion: readPrice(cachedInput, "--cached-input") }),
    outputNanosPerMillion: readPrice(output, "--output"),
  };
}

function readPrice(text: string, option: string): bigint {
  const nanos = parseCredit(text);
  if (nanos !== null && nanos >= 0n && nanos <= limits.priceNanosMax) return nanos;
  throw misuse(
    `${option} ${JSON.stringify(text)} is no price: write credits for a million tokens, 0 to ${formatCredit(limits.priceNanosMax)}, with at most 9 decimals.`,
  );
}

function one(list: PriceList): Outcome {
  return { json: priceListToJson(list), text: formatTable([heads, ...cells(list)]) };
}

const heads = ["NAME", "FROM", "INPUT", "CACHED INPUT", "OUTPUT"];

function cells(list: PriceList): readonly (readonly string[])[] {
  const { name, prices } = priceListToJson(list);
  return prices.map(({ cached_input: cached, effective_from: from, input, output }) => [
    name,
    from ?? "the settings",
    input,
    cached,
    output,
  ]);
}
