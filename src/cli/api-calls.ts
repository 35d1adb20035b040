import { limits } from "../limits.ts";
import {
  accountLimitsOf,
  amountOf,
  creditOf,
  type Json,
  limitsOf,
  noneOr,
  ofEachAccount,
  type Options,
  pairsOf,
  policyOf,
  pricesOf,
  queryOf,
  readCount,
  scopesOf,
  secondsOf,
  some,
  spanOf,
  timeOver,
  timeToCome,
  typesOf,
  yesOrNo,
} from "./call-options.ts";
import { CommandError, misuse, type Outcome } from "./command.ts";

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
  /** What a list on a terminal says that has no row. */
  readonly none?: string;
  /** What comes behind the table on a terminal, from the name of the program and what the command prints. */
  readonly next?: (programName: string, json: Json) => string;
  /** Of a list: only its first page. */
  readonly onePage?: boolean;
  /** A ledger that is not there is made for it. */
  readonly creates?: true;
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
const accountChange = (id: string, body: Json): ApiCall => ({
  ...changeOf(account(id), body),
  rows: accountRows,
});
const keyChange = (id: string, body: Json): ApiCall => ({
  ...changeOf(key(id), body),
  shown: keyOf,
  rows: keyRows,
});

/** Every command with a call, by its words. */
export const apiCalls: Readonly<
  Record<string, (words: readonly string[], options: Options) => ApiCall>
> = {
  "account create": ([name], { credit }) => ({
    method: "POST",
    path: "/accounts",
    body: { name, credit: creditOf(credit) },
    rows: accountRows,
    next: (programName, { id }) => `Make a key for it: ${programName} key create ${String(id)}\n`,
    creates: true,
  }),
  "account list": () => ({
    method: "GET",
    path: `/accounts?limit=${String(limits.pageRowsMax)}`,
    shown: dataOf,
    rows: accountRows,
    none: "There is no account. Make one: `tributary account create NAME --credit 10`",
  }),
  "account show": ([id = ""]) => ({ method: "GET", path: account(id), rows: accountRows }),
  "account change": ([id = ""], options) =>
    changeOf(account(id), {
      name: options["name"],
      external_id: noneOr(options["externalId"]),
      metadata: pairsOf(options["metadata"]),
      limits: some(accountLimitsOf(options)),
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
    body: { amount: amountOf(amount), kind, note, receipt, reference },
    shown: ({ account: credited, entry }) => ({ ...(credited as Json), entry }),
    rows: accountRows,
  }),
  "account disable": ([id = ""]) => accountChange(id, { status: "disabled" }),
  "account enable": ([id = ""]) => accountChange(id, { status: "active" }),
  "account price": ([id = "", list]) => accountChange(id, { price_list: list }),
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
      scopes: scopesOf(scopes),
      expires_at: timeToCome(expires),
      limits: some(limitsOf(options)),
    },
    shown: keyWithSecret,
  }),
  "key change": ([id = ""], options) =>
    keyChange(id, {
      name: options["name"],
      scopes: scopesOf(options["scopes"]),
      expires_at: options["expires"] === "none" ? null : timeToCome(options["expires"]),
      limits: some(limitsOf(options)),
      budget: policyOf(options["budget"], {
        period: options["period"],
        timezone: options["timezone"],
      }),
    }),
  "key list": ([id = ""]) => ({
    method: "GET",
    path: `${account(id)}/keys`,
    shown: ({ data }) => (data as readonly Json[]).map(keyOf),
    rows: keyRows,
  }),
  "key rotate": ([id = ""], { overlap }) => ({
    method: "POST",
    path: `${key(id)}/rotate`,
    body: { overlap_seconds: secondsOf(overlap) },
    shown: keyWithSecret,
  }),
  "key pause": ([id = ""]) => keyChange(id, { status: "paused" }),
  "key resume": ([id = ""]) => keyChange(id, { status: "active" }),
  "key revoke": ([id = ""]) => ({ method: "DELETE", path: key(id), shown: keyOf, rows: keyRows }),
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
  "operator create": ([name], { expires, role }) => {
    const expiresAt = timeToCome(expires);
    return {
      method: "POST",
      path: "/operators",
      body: { name, role, expires_at: expiresAt },
      shown: (made) => ({ ...operatorWithToken(made), expires: expiresAt ?? null }),
      creates: true,
    };
  },
  "operator list": () => ({
    method: "GET",
    path: "/operators",
    shown: ({ data }) => (data as readonly Json[]).map(operatorOf),
    rows: operatorRows,
    none: "There is no operator. Make one: `tributary operator create NAME --role owner`",
  }),
  "operator revoke": ([id = ""]) => ({
    method: "DELETE",
    path: `/operators/${encodeURIComponent(id)}`,
    shown: operatorOf,
    rows: operatorRows,
  }),
  usage: (_words, options) => ({
    method: "GET",
    path: `/usage?${queryOf({
      account: options["account"],
      key: options["key"],
      by: ofEachAccount(options["by"]),
      timezone: options["timezone"],
      ...spanOf(options),
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
      limit: String(readCount(options["limit"], "--limit", limits.pageRowsMax)),
      ...spanOf(options),
    })}`,
    shown: ({ data }) => (data as readonly Json[]).map((row) => ({ ...row, time: row["at"] })),
    rows: auditRows,
    none: "Nothing was changed that these filters let through.",
    onePage: true,
  }),
  "seal rotate": () => ({ method: "POST", path: "/seal_keys" }),
};

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

const accountRows = rowsOf("id name balance held available status");
const operatorRows = rowsOf("id name role created revoked");
const auditColumns = rowsOf("time actor action target before after");

/** The rows of one thing or a list, with these columns. */
function rowsOf(columns: string): (json: unknown) => readonly Json[] {
  const names = columns.split(" ");
  return (json) =>
    ([json].flat() as readonly Json[]).map((row) =>
      Object.fromEntries(names.map((name) => [name, row[name]])),
    );
}

/** A key with the names that its times had before the API. */
function keyOf(shown: Json): Json {
  const { created_at: created, expires_at: expires, revoked_at: revoked } = shown;
  return { ...shown, expires, last_used: shown["last_used_at"], created, revoked };
}

function keyRows(json: unknown): readonly Json[] {
  return ([json].flat() as readonly Json[]).map((row) => {
    const { id, account: of, name, status, scopes, limits: its, ...rest } = row;
    const { requests_per_minute: perMinute, output_tokens_max: tokens } = its as Json;
    const { expires, last_used, created, revoked } = rest;
    const times = { expires, last_used, created, revoked };
    const words = (scopes as readonly string[]).join(" ");
    return {
      id,
      account: of,
      name,
      status,
      scopes: words,
      per_minute: perMinute,
      tokens,
      ...times,
    };
  });
}

function keyWithSecret({ account: of, id, name, secret }: Json): Json {
  return { id, account: of, name, key: secret };
}

/** An operator with the names that its times had before the API. */
function operatorOf(shown: Json): Json {
  const { created_at: created, revoked_at: revoked } = shown;
  return { ...shown, created, revoked };
}

function operatorWithToken({ secret: token, secret_shown: _shown, ...made }: Json): Json {
  return { ...operatorOf(made), token };
}

function auditRows(json: unknown): readonly Json[] {
  return auditColumns(json).map(({ after, before, ...row }) => ({
    ...row,
    before: factsOf(before),
    after: factsOf(after),
  }));
}

function factsOf(facts: unknown): string | null {
  if (facts === null) return null;
  return Object.entries(facts as Json)
    .map(([name, value]) => `${name}=${JSON.stringify(value)}`)
    .join(" ");
}
