import { formatCredit, parseCredit } from "../admission/price.ts";
import { keyScopes } from "../ledger/records.ts";
import { limits } from "../limits.ts";
import { misuse } from "./command.ts";
import { readFutureTime, readTime } from "./read-time.ts";

// What the options of commands say, in the words of the operators' API; what makes no sense is a misuse of the command.

/** Options as they were given, by their names. */
export type Options = Readonly<Record<string, string | undefined>>;
/** A JSON object. */
export type Json = Readonly<Record<string, unknown>>;

/** Prices as the options of a command name them. */
export function pricesOf(options: Options) {
  const { cachedInput, from, input, output } = options;
  return {
    input: priceOf(input, "--input"),
    cached_input: priceOf(cachedInput, "--cached-input"),
    output: priceOf(output, "--output"),
    effective_from: timeToCome(from, "--from"),
  };
}

function priceOf(text: string | undefined, option: string): string | undefined {
  const nanos = text === undefined ? 0n : parseCredit(text);
  if (nanos !== null && nanos >= 0n && nanos <= limits.priceNanosMax) return text;
  throw misuse(
    `${option} ${JSON.stringify(text)} is no price: write credits for a million tokens, 0 to ${formatCredit(limits.priceNanosMax)}, with at most 9 decimals.`,
  );
}

/** A text, or null where it is `none`. */
export function noneOr(text: string | undefined): string | null | undefined {
  return text === "none" ? null : text;
}

/** A grant or a budget: `none` takes it away, and what is not named stays. */
export function policyOf(amount: string | undefined, rest: Json): Json | null | undefined {
  return amount === "none" ? null : some({ amount, ...rest });
}

/** undefined where no member is given. */
export function some(members: Json): Json | undefined {
  return Object.values(members).every((member) => member === undefined) ? undefined : members;
}

/** Limits of a key, or of the keys of an account. */
export function limitsOf(options: Options) {
  return {
    requests_per_minute: countOf(options, "requestsPerMinute", limits.requestsPerMinuteMax),
    output_tokens_max: countOf(options, "outputTokensMax", limits.outputAllowanceMax),
  };
}

/** Limits of an account. */
export function accountLimitsOf(options: Options) {
  const concurrent = countOf(options, "concurrentRequests", limits.concurrencyMax);
  return { concurrent_requests: concurrent, ...limitsOf(options) };
}

/** A whole number; null: none. */
function countOf(options: Options, name: string, max: number): number | null | undefined {
  const text = options[name];
  if (text === undefined || text === "none") return noneOr(text) as null | undefined;
  const count = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= max) return count;
  const option = name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw misuse(
    `--${option} ${JSON.stringify(text)} is no whole number from 1 to ${String(max)}; \`none\` takes it away.`,
  );
}

/** `yes` or `no`. */
export function yesOrNo(text: string | undefined, option: string): boolean | undefined {
  if (text === undefined || text === "yes" || text === "no")
    return text === undefined ? undefined : text === "yes";
  throw misuse(`${option} is yes or no, not ${JSON.stringify(text)}.`);
}

/** `team=search,cost=`: pairs to set, and those to take away. */
export function pairsOf(text: string | undefined): Json | undefined {
  if (text === undefined) return undefined;
  const pairs = text.split(",").map((pair): [string, string | null] => {
    const at = pair.indexOf("=");
    if (at < 1) throw misuse(`--metadata ${JSON.stringify(pair)} is no pair: write NAME=VALUE.`);
    return [pair.slice(0, at), pair.slice(at + 1) === "" ? null : pair.slice(at + 1)];
  });
  return Object.fromEntries(pairs);
}

/** Types of events; null: all. */
export function typesOf(text: string | undefined): readonly string[] | null | undefined {
  return text === "all" ? null : text?.split(",");
}

/** A span that begins now. */
export function secondsOf(overlap: string | undefined): number | undefined {
  if (overlap === undefined) return undefined;
  const nowMs = Date.now();
  const seconds = Math.round((nowMs - readTime(overlap, "--overlap", nowMs)) / 1_000);
  if (seconds >= 0 && seconds <= limits.rotationOverlapSecondsMax) return seconds;
  throw misuse(`--overlap ${JSON.stringify(overlap)} is no span of up to 30d, such as 24h.`);
}

/** A time to come, as RFC 3339 has it. */
export function timeToCome(text: string | undefined, option = "--expires"): string | undefined {
  if (text === undefined) return undefined;
  return new Date(readFutureTime(text, option, Date.now())).toISOString();
}

/** A time, or the begin of a span that ends now. */
export function timeOver(text: string | undefined, option: string): string | undefined {
  return text === undefined
    ? undefined
    : new Date(readTime(text, option, Date.now())).toISOString();
}

/** The parameters that are given, as a query. */
export function queryOf(parameters: Options): string {
  const given = Object.entries(parameters).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return new URLSearchParams(given).toString();
}

/** What a key is for. */
export function scopesOf(text: string | undefined): readonly string[] | undefined {
  const words = text?.split(",");
  if (words?.every((word) => keyScopes.some((scope) => scope === word)) !== false) return words;
  throw misuse(
    `--scopes ${JSON.stringify(text)} is no list of scopes: write generate, read, or generate,read.`,
  );
}

/** An amount of credits that moves. */
export function amountOf(text: string | undefined): string {
  const nanos = parseCredit(text ?? "");
  if (nanos === 0n) throw misuse("AMOUNT must not be 0.");
  if (text !== undefined && nanos !== null) return text;
  throw misuse(
    `AMOUNT ${JSON.stringify(text)} is no amount of credits: write it as 10, 0.25 or -3, with at most 9 decimals.`,
  );
}

/** The credit with which an account begins. */
export function creditOf(text = "0"): string {
  const nanos = parseCredit(text);
  if (nanos !== null && nanos >= 0n) return text;
  if (nanos !== null) throw misuse("--credit must not be negative.");
  throw misuse(
    `--credit ${JSON.stringify(text)} is no amount of credits: write it as 10 or 0.25, with at most 9 decimals.`,
  );
}

/** From when and until when. */
export function spanOf(options: Options) {
  const since = timeOver(options["since"], "--since");
  const until = timeOver(options["until"], "--until");
  if (since === undefined || until === undefined || since < until) return { since, until };
  throw misuse("--since must be before --until.");
}

/** A whole number from 1 to `max`. */
export function readCount(text: string | undefined, option: string, max: number): number {
  const count = /^\d{1,9}$/.test(text ?? "") ? Number(text) : 0;
  if (count >= 1 && count <= max) return count;
  throw misuse(`${option} ${JSON.stringify(text)} is no number from 1 to ${String(max)}.`);
}

/** One grouping is of each account, as the command always was; two are as they are named. */
export function ofEachAccount(by = ""): string {
  return by.includes(",") || by === "account" ? by : `account,${by}`;
}
