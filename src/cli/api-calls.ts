import { formatCredit, parseCredit } from "../admission/price.ts";
import { limits } from "../limits.ts";
import { CommandError, misuse, type Outcome } from "./command.ts";
import { ofEachAccount } from "./of-each-account.ts";
import { readFutureTime, readTime } from "./read-time.ts";

/** Options as they were given, by their names. */
export type Options = Readonly<Record<string, string | undefined>>;
/** A JSON object. */
export type Json = Readonly<Record<string, unknown>>;

/** A command's call of the operators' API, from its words and options. */
export interface ApiCall {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  /** From what the path answers now, where it is a function. */
  readonly body?: Json | ((now: Json) => Json);
  /** What of the answer the command prints; absent: all of it. */
  readonly shown?: (answer: Json) => unknown;
  /** The rows of its table on a terminal; absent: those of a list, with their members that are no objects. */
  readonly rows?: (json: unknown) => readonly Json[];
  /** Of a list: only its first page. */
  readonly onePage?: boolean;
  /** Asked again and again until the answer is no longer `running`. */
  readonly until?: string;
  /** What the command has to say, in the place of lines and tables; the answer is text where it is no JSON. */
  readonly outcome?: (answer: unknown) => Outcome | Promise<Outcome>;
}

const account = (id: string): string => `/accounts/${encodeURIComponent(id)}`;
const key = (id: string): string => `/keys/${encodeURIComponent(id)}`;
const priceList = (name: string): string => `/price_lists/${encodeURIComponent(name)}`;
const webhook = (id: string): string => `/webhooks/${encodeURIComponent(id)}`;
const changeOf = (path: string, body: Json): ApiCall => ({ method: "PATCH", path, body });
const dataOf = ({ data }: Json): unknown => data;
const creditedOf = ({ account: credited }: Json): unknown => credited;

/** Every command with a call, by its words. */
export const apiCalls: Readonly<
  Record<string, (words: readonly string[], options: Options) => ApiCall>
> = {
  "account create": ([name], { credit }) => ({
    method: "POST",
    path: "/accounts",
    body: { name, credit },
  }),
  "account list": () => ({ method: "GET", path: "/accounts", shown: dataOf }),
  "account show": ([id = ""]) => ({ method: "GET", path: account(id) }),
  "account change": ([id = ""], options) =>
    changeOf(account(id), {
      name: options["name"],
      external_id: noneOr(options["externalId"]),
      metadata: pairsOf(options["metadata"]),
      limits: some({
        concurrent_requests: countOf(options, "concurrentRequests"),
        ...limitsOf(options),
      }),
      low_balance_at: noneOr(options["lowBalanceAt"]),
      grant: policyOf(options["grant"], {
        every: options["every"],
        timezone: options["timezone"],
        carry_over: yesOrNo(options["carryOver"], "--carry-over"),
      }),
    }),
  "account statement": ([id = "", month = ""], { form = "csv", json }) => ({
    method: "GET",
    path: `${account(id)}/statements/${encodeURIComponent(month)}?format=${json === undefined ? form : "json"}`,
    outcome: (answer) => ({ json: answer, text: String(answer) }),
  }),
  "account credit": ([id = "", amount], { kind, note, receipt, reference }) => ({
    method: "POST",
    path: `${account(id)}/credits`,
    body: { amount, kind, note, receipt, reference },
    shown: creditedOf,
  }),
  "account disable": ([id = ""]) => changeOf(account(id), { status: "disabled" }),
  "account enable": ([id = ""]) => changeOf(account(id), { status: "active" }),
  "account price": ([id = "", list]) => changeOf(account(id), { price_list: list }),
  "price list": () => ({ method: "GET", path: "/price_lists", shown: dataOf, rows: priceRows }),
  "price show": ([name = ""]) => ({ method: "GET", path: priceList(name), rows: priceRows }),
  "price create": ([name], options) => ({
    method: "POST",
    path: "/price_lists",
    body: { name, prices: [pricesOf(options)] },
    rows: priceRows,
  }),
  "price change": ([name = ""], options) => {
    const given = pricesOf(options);
    const prices = (now: Json): Json => ({
      prices: [...pricesBut(now, given.effective_from), given],
    });
    return { method: "PATCH", path: priceList(name), body: prices, rows: priceRows };
  },
  "price remove": ([name = ""], { from }) => {
    const time = timeOver(from, "--from");
    const prices = (now: Json): Json => {
      const left = pricesBut(now, time);
      if (now["version"] === 0 || left.length < pricesIn(now).length) return { prices: left };
      throw new CommandError(
        "not_found",
        1,
        `${name} has no prices from ${String(time)} on. \`tributary price show ${JSON.stringify(name)}\` shows from when its prices hold.`,
      );
    };
    return { method: "PATCH", path: priceList(name), body: prices, rows: priceRows };
  },
  "key create": ([id = ""], { expires, name, scopes, ...options }) => ({
    method: "POST",
    path: `${account(id)}/keys`,
    body: {
      name,
      scopes: scopes?.split(","),
      expires_at: timeToCome(expires),
      limits: some(limitsOf(options)),
    },
    shown: (made) => withSecret(made, "key"),
  }),
  "key change": ([id = ""], options) =>
    changeOf(key(id), {
      name: options["name"],
      scopes: options["scopes"]?.split(","),
      expires_at: options["expires"] === "none" ? null : timeToCome(options["expires"]),
      limits: some(limitsOf(options)),
      budget: policyOf(options["budget"], {
        period: options["period"],
        timezone: options["timezone"],
      }),
    }),
  "key list": ([id = ""]) => ({ method: "GET", path: `${account(id)}/keys`, shown: dataOf }),
  "key rotate": ([id = ""], { overlap }) => ({
    method: "POST",
    path: `${key(id)}/rotate`,
    body: { overlap_seconds: secondsOf(overlap) },
    shown: (made) => withSecret(made, "key"),
  }),
  "key pause": ([id = ""]) => changeOf(key(id), { status: "paused" }),
  "key resume": ([id = ""]) => changeOf(key(id), { status: "active" }),
  "key revoke": ([id = ""]) => ({ method: "DELETE", path: key(id) }),
  "webhook create": ([url], { description, types }) => ({
    method: "POST",
    path: "/webhooks",
    body: { url, description, types: typesOf(types) },
  }),
  "webhook list": () => ({ method: "GET", path: "/webhooks", shown: dataOf }),
  "webhook change": ([id = ""], { address, description, status, types }) =>
    changeOf(webhook(id), { url: address, description, status, types: typesOf(types) }),
  "webhook rotate": ([id = ""], { overlap }) => ({
    method: "POST",
    path: `${webhook(id)}/rotate`,
    body: { overlap_seconds: secondsOf(overlap) },
  }),
  "webhook delete": ([id = ""]) => ({ method: "DELETE", path: webhook(id) }),
  "webhook test": ([id = ""]) => ({ method: "POST", path: `${webhook(id)}/test` }),
  "webhook deliveries": ([id = ""], { limit, state }) => ({
    method: "GET",
    path: `${webhook(id)}/deliveries?${queryOf({ limit, state })}`,
    shown: dataOf,
    onePage: true,
    rows: (json) =>
      (json as readonly Json[]).map(({ event, ...row }) => {
        const { id: name, type } = event as Json;
        return { event: name, type, ...row };
      }),
  }),
  "webhook resend": ([id = "", event = ""]) => ({
    method: "POST",
    path: `${webhook(id)}/deliveries/${encodeURIComponent(event)}/resend`,
  }),
  "operator create": ([name], { expires, role }) => ({
    method: "POST",
    path: "/operators",
    body: { name, role, expires_at: timeToCome(expires) },
    shown: (made) => withSecret(made, "token"),
  }),
  "operator list": () => ({ method: "GET", path: "/operators", shown: dataOf }),
  "operator revoke": ([id = ""]) => ({
    method: "DELETE",
    path: `/operators/${encodeURIComponent(id)}`,
  }),
  usage: (_words, options) => ({
    method: "GET",
    path: `/usage?${queryOf({
      account: options["account"],
      key: options["key"],
      by: ofEachAccount(options["by"] ?? ""),
      timezone: options["timezone"],
      since: timeOver(options["since"], "--since"),
      until: timeOver(options["until"], "--until"),
    })}`,
    outcome: async (answer) => {
      const { usageOutcome } = await import("./usage.ts");
      return usageOutcome((answer as { readonly data: readonly Json[] }).data, options["format"]);
    },
  }),
  receipt: ([id = ""]) => ({ method: "GET", path: `/receipts/${encodeURIComponent(id)}` }),
  verify: (_words, { against, saveHeads }) => {
    if (against !== undefined || saveHeads !== undefined)
      throw misuse("--against and --save-heads are of a ledger here: leave --url out.");
    return {
      method: "POST",
      path: "/verify",
      until: "/verify",
      outcome: async (answer) => {
        const { reportOutcome } = await import("./verify.ts");
        return reportOutcome((answer as Json)["report"]);
      },
    };
  },
  audit: (_words, options) => ({
    method: "GET",
    path: `/audit?${queryOf({
      actor: options["actor"],
      action: options["action"],
      target: options["target"],
      limit: options["limit"],
      since: timeOver(options["since"], "--since"),
      until: timeOver(options["until"], "--until"),
    })}`,
    shown: dataOf,
    onePage: true,
  }),
  "seal rotate": () => ({ method: "POST", path: "/seal_keys" }),
};

/** Prices as the options of a command name them. */
function pricesOf(options: Options) {
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

function pricesIn({ prices }: Json): readonly Json[] {
  return prices as readonly Json[];
}

/** The prices of a list but those that hold from that time on. */
function pricesBut(list: Json, from: string | undefined): readonly Json[] {
  return pricesIn(list).filter((price) => price["effective_from"] !== from);
}

/** A row for each time from which other prices hold, of one list or several. */
function priceRows(json: unknown): readonly Json[] {
  return [json].flat().flatMap((list) =>
    pricesIn(list as Json).map(({ effective_from: from, ...price }) => ({
      name: (list as Json)["name"],
      from: from ?? "the settings",
      ...price,
    })),
  );
}

function withSecret(made: Json, name: "key" | "token"): Json {
  const rest = Object.entries(made).filter(([one]) => !one.startsWith("secret"));
  return { ...Object.fromEntries(rest), [name]: made["secret"] };
}

function noneOr(text: string | undefined): string | null | undefined {
  return text === "none" ? null : text;
}

/** A grant or a budget: `none` takes it away, and what is not named stays. */
function policyOf(amount: string | undefined, rest: Json): Json | null | undefined {
  return amount === "none" ? null : some({ amount, ...rest });
}

/** undefined where no member is given. */
function some(members: Json): Json | undefined {
  return Object.values(members).every((member) => member === undefined) ? undefined : members;
}

function limitsOf(options: Options) {
  return {
    requests_per_minute: countOf(options, "requestsPerMinute"),
    output_tokens_max: countOf(options, "outputTokensMax"),
  };
}

function countOf(options: Options, name: string): number | null | undefined {
  const text = options[name];
  if (text === undefined || text === "none") return noneOr(text) as null | undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  const option = name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  throw misuse(`--${option} ${JSON.stringify(text)} is no whole number; \`none\` takes it away.`);
}

function yesOrNo(text: string | undefined, option: string): boolean | undefined {
  if (text === undefined || text === "yes" || text === "no")
    return text === undefined ? undefined : text === "yes";
  throw misuse(`${option} is yes or no, not ${JSON.stringify(text)}.`);
}

/** `team=search,cost=`: pairs to set, and those to take away. */
function pairsOf(text: string | undefined): Json | undefined {
  if (text === undefined) return undefined;
  const pairs = text.split(",").map((pair): [string, string | null] => {
    const at = pair.indexOf("=");
    if (at < 1) throw misuse(`--metadata ${JSON.stringify(pair)} is no pair: write NAME=VALUE.`);
    return [pair.slice(0, at), pair.slice(at + 1) === "" ? null : pair.slice(at + 1)];
  });
  return Object.fromEntries(pairs);
}

function typesOf(text: string | undefined): readonly string[] | null | undefined {
  return text === "all" ? null : text?.split(",");
}

function secondsOf(overlap: string | undefined): number | undefined {
  if (overlap === undefined) return undefined;
  const nowMs = Date.now();
  return Math.round((nowMs - readTime(overlap, "--overlap", nowMs)) / 1_000);
}

function timeToCome(text: string | undefined, option = "--expires"): string | undefined {
  if (text === undefined) return undefined;
  return new Date(readFutureTime(text, option, Date.now())).toISOString();
}

function timeOver(text: string | undefined, option: string): string | undefined {
  return text === undefined
    ? undefined
    : new Date(readTime(text, option, Date.now())).toISOString();
}

function queryOf(parameters: Options): string {
  const given = Object.entries(parameters).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return new URLSearchParams(given).toString();
}
