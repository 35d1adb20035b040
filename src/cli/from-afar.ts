import { type CommandUnknownOpts, CommanderError } from "@commander-js/extra-typings";
import { askApi } from "./api.ts";
import type { Definitions, Outcome, Shell } from "./command.ts";
import { readFutureTime, readTime } from "./read-time.ts";
import { formatTable } from "./text-table.ts";

// Commands that have a call of the operators' API make it where `--url` names a service; what they print as JSON has
// the members of the command, and those that the API adds.

type Options = Readonly<Record<string, string | undefined>>;
type Json = Readonly<Record<string, unknown>>;

/** A command's call, from its words and options. */
interface AfarCall {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  readonly path: string;
  /** From what the path answers now, where it is a function. */
  readonly body?: Json | ((now: Json) => Json);
  /** What of the answer the command prints; absent: all of it. */
  readonly shown?: (answer: Json) => unknown;
}

const account = (id: string): string => `/accounts/${encodeURIComponent(id)}`;
const key = (id: string): string => `/keys/${encodeURIComponent(id)}`;
const priceList = (name: string): string => `/price_lists/${encodeURIComponent(name)}`;
const changeOf = (path: string, body: Json): AfarCall => ({ method: "PATCH", path, body });
const dataOf = ({ data }: Json): unknown => data;
const creditedOf = ({ account: credited }: Json): unknown => credited;

/** Every command with a call, by its words. */
const calls: Readonly<Record<string, (words: readonly string[], options: Options) => AfarCall>> = {
  "account create": ([name], { credit }) => ({
    method: "POST",
    path: "/accounts",
    body: { name, credit },
  }),
  "account list": () => ({ method: "GET", path: "/accounts", shown: dataOf }),
  "account show": ([id = ""]) => ({ method: "GET", path: account(id) }),
  "account credit": ([id = "", amount], { kind, note, receipt, reference }) => ({
    method: "POST",
    path: `${account(id)}/credits`,
    body: { amount, kind, note, receipt, reference },
    shown: creditedOf,
  }),
  "account disable": ([id = ""]) => changeOf(account(id), { status: "disabled" }),
  "account enable": ([id = ""]) => changeOf(account(id), { status: "active" }),
  "account price": ([id = "", list]) => changeOf(account(id), { price_list: list }),
  "price list": () => ({ method: "GET", path: "/price_lists", shown: dataOf }),
  "price show": ([name = ""]) => ({ method: "GET", path: priceList(name) }),
  "price create": ([name], options) => ({
    method: "POST",
    path: "/price_lists",
    body: { name, prices: [pricesOf(options)] },
  }),
  "price change": ([name = ""], options) => {
    const given = pricesOf(options);
    const prices = (now: Json): Json => ({
      prices: [...pricesBut(now, given.effective_from), given],
    });
    return { method: "PATCH", path: priceList(name), body: prices };
  },
  "price remove": ([name = ""], { from }) => {
    const prices = (now: Json): Json => ({ prices: pricesBut(now, timeOver(from, "--from")) });
    return { method: "PATCH", path: priceList(name), body: prices };
  },
  "key create": ([id = ""], { expires, name, scopes }) => ({
    method: "POST",
    path: `${account(id)}/keys`,
    body: { name, scopes: scopes?.split(","), expires_at: timeToCome(expires) },
    shown: (made) => withSecret(made, "key"),
  }),
  "key list": ([id = ""]) => ({ method: "GET", path: `${account(id)}/keys`, shown: dataOf }),
  "key pause": ([id = ""]) => changeOf(key(id), { status: "paused" }),
  "key resume": ([id = ""]) => changeOf(key(id), { status: "active" }),
  "key revoke": ([id = ""]) => ({ method: "DELETE", path: key(id) }),
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
  receipt: ([id = ""]) => ({ method: "GET", path: `/receipts/${encodeURIComponent(id)}` }),
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
  }),
  "seal rotate": () => ({ method: "POST", path: "/seal_keys" }),
};

/** Gives each command that has a call the option `--url`, by which it is made. */
export function addUrl(
  command: CommandUnknownOpts,
  { finish, shell }: Definitions,
  path: readonly string[],
): void {
  const callOf = calls[path.join(" ")];
  if (callOf === undefined) return;
  command.option(
    "--url <URL>",
    "of a service's listener for operators, with TRIBUTARY_OPERATOR_TOKEN: there, and not on the ledger here",
  );
  command.hook("preAction", async (_command, action) => {
    // Options of these commands are texts.
    const options = action.opts() as Options;
    if (options["url"] === undefined) return;
    finish(await fromAfar(shell, options["url"], callOf(action.args, options)));
    // What the command does with the ledger here is left out.
    throw new CommanderError(0, "tributary.fromAfar", "");
  });
}

async function fromAfar(shell: Shell, url: string, call: AfarCall): Promise<Outcome> {
  const { body, method, path, shown = (answer: Json) => answer } = call;
  const now = typeof body === "function" ? await askApi(shell, { method: "GET", path, url }) : {};
  const sent = typeof body === "function" ? body(now) : body;
  const given = sent === undefined ? {} : { body: JSON.stringify(sent) };
  const first = await askApi(shell, { method, path, url, ...given });
  let json = shown(first);
  if (!Array.isArray(json)) return { json, text: linesOf(json as Json) };
  // A command lists all of them; `audit` as many as it is asked for.
  for (let { next_cursor: next } = first; typeof next === "string" && !path.includes("?");) {
    const page = await askApi(shell, { method, path: `${path}?cursor=${next}`, url });
    json = [...(json as readonly unknown[]), ...(shown(page) as readonly unknown[])];
    next = page["next_cursor"];
  }
  return { json, text: tableOf(json as readonly Json[]) };
}

/** Prices as the options of a command name them. */
function pricesOf(options: Options) {
  const { cachedInput, from, input, output } = options;
  const effectiveFrom = timeToCome(from, "--from");
  return { input, cached_input: cachedInput, output, effective_from: effectiveFrom };
}

/** The prices of a list but those that hold from that time on. */
function pricesBut({ prices }: Json, from: string | undefined): readonly unknown[] {
  const all = prices as readonly { readonly effective_from: string | null }[];
  return all.filter((price) => price.effective_from !== from);
}

function withSecret(made: Json, name: "key" | "token"): Json {
  const rest = Object.entries(made).filter(([one]) => !one.startsWith("secret"));
  return { ...Object.fromEntries(rest), [name]: made["secret"] };
}

function linesOf(row: Json): string {
  // What is shown once comes first, alone in its line, as of the command itself.
  const secret = row["key"] ?? row["token"];
  const isSecret = typeof secret === "string" && /^tr(?:ib|op)_/.test(secret);
  const rest = Object.entries(row).filter(([, value]) => value !== secret);
  return isSecret ? `${secret}\n` : formatTable(rest.map(([name, value]) => [name, cell(value)]));
}

function tableOf(rows: readonly Json[]): string {
  const [first] = rows;
  if (first === undefined) return "There is none.\n";
  const names = Object.keys(first).filter((name) => typeof first[name] !== "object");
  const heads = names.map((name) => name.toUpperCase());
  return formatTable([heads, ...rows.map((row) => names.map((name) => cell(row[name])))]);
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "-";
  return typeof value === "string" ? value : JSON.stringify(value);
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
