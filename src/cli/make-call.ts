import { setTimeout as sleep } from "node:timers/promises";
import { type CommandUnknownOpts, CommanderError } from "@commander-js/extra-typings";
import { type ApiCall, apiCalls } from "./api-calls.ts";
import type { Json, Options } from "./call-options.ts";
import { type Definitions, type Outcome, type Shell, spellCommands } from "./command.ts";
import type { Ask } from "./here-api.ts";
import { formatTable } from "./text-table.ts";

// Commands that have a call of the operators' API make it where `--url` names a service; what they print as JSON has
// the members of the command, and those that the API adds. Newer commands are such a call on the ledger here, too.

const askAgainMs = 500;

/** Gives each command that has a call the option `--url`, by which it is made. */
export function addUrl(
  command: CommandUnknownOpts,
  { finish, shell }: Definitions,
  path: readonly string[],
): void {
  const callOf = apiCalls[path.join(" ")];
  if (callOf === undefined) return;
  command.option(
    "--url <URL>",
    "of a service's listener for operators, with TRIBUTARY_OPERATOR_TOKEN: there, and not on the ledger here",
  );
  command.hook("preAction", async (_command, action) => {
    const options = optionsOf(action, shell);
    if (options["url"] === undefined) return;
    const call = callOf(action.args, options);
    const { askAfar } = await import("./api.ts");
    finish(await makeCall(askAfar(shell, options["url"]), call, shell));
    // What the command does with the ledger here is left out.
    throw new CommanderError(0, "tributary.fromAfar", "");
  });
}

/** What a command does that is a call of the API and nothing else: it is made on the ledger here. */
export function callHere({ finish, shell }: Definitions): (...given: unknown[]) => Promise<void> {
  return async (...given) => {
    const command = given.at(-1) as CommandUnknownOpts;
    const call = apiCalls[wordsOf(command)]?.(command.args, optionsOf(command, shell));
    if (call !== undefined) finish(await callOnLedger(shell, call));
  };
}

async function callOnLedger(shell: Shell, call: ApiCall): Promise<Outcome> {
  const { withApiHere } = await import("./here-api.ts");
  const { creates = false } = call;
  return withApiHere(shell, (ask) => makeCall(ask, call, shell), { creates });
}

/** Options of these commands are texts; `json` is there where the command prints a document. */
function optionsOf(command: CommandUnknownOpts, { json }: Shell): Options {
  const { json: _json, ...options } = command.opts();
  return { ...(options as Options), ...(json ? { json: "" } : {}) };
}

/** `webhook create` */
function wordsOf(command: CommandUnknownOpts): string {
  const { parent } = command;
  const isOfGroup = parent !== null && parent.parent !== null;
  return isOfGroup ? `${wordsOf(parent)} ${command.name()}` : command.name();
}

async function makeCall(ask: Ask, call: ApiCall, shell: Shell): Promise<Outcome> {
  const { body, method, path, shown = (answer: Json) => answer, until } = call;
  const now = typeof body === "function" ? await read(ask, path) : {};
  const sent = typeof body === "function" ? body(now as Json) : body;
  const version = Number((now as Json)["version"] ?? 0);
  const begun = await read(ask, path, {
    method,
    ...(sent === undefined ? {} : { body: JSON.stringify(sent) }),
    headers: {
      ...(sent === undefined ? {} : { "content-type": "application/json" }),
      // Of two commands at once that change what they have read, the second is refused.
      ...(version === 0 ? {} : { "if-match": `"${String(version)}"` }),
    },
  });
  const first = until === undefined ? begun : await ended(ask, until);
  const answer = call.onePage === true ? first : await allPages(ask, path, first);
  if (call.outcome !== undefined) return call.outcome(answer);
  const json = shown(answer as Json);
  return { json, text: spellCommands(textOf(json, call, shell), shell.programName) };
}

/** A list with the rows of all its pages; what is no list as it is. */
async function allPages(ask: Ask, path: string, first: unknown): Promise<unknown> {
  const rows: unknown[] = [];
  for (let page = first as Json; ;) {
    const { data, next_cursor: next } = page;
    if (typeof next !== "string")
      return rows.length === 0 ? first : { ...page, data: [...rows, ...(data as unknown[])] };
    rows.push(...(data as unknown[]));
    page = (await read(ask, `${path}${path.includes("?") ? "&" : "?"}cursor=${next}`)) as Json;
  }
}

function textOf(
  json: unknown,
  { next, none = "There is none.", rows }: ApiCall,
  shell: Shell,
): string {
  if (!Array.isArray(json) && rows === undefined) return linesOf(json as Json, shell);
  const table = rows?.(json) ?? (json as readonly Json[]);
  if (table.length === 0) return `${none}\n`;
  return `${tableOf(table)}${next?.(shell.programName, json as Json) ?? ""}`;
}

/** What a path answers of something once it does not run any more. */
async function ended(ask: Ask, path: string): Promise<unknown> {
  for (;;) {
    const answer = (await read(ask, path)) as Json;
    if (answer["state"] !== "running") return answer;
    await sleep(askAgainMs);
  }
}

/** What a call answers: JSON, or text where it is a file. */
async function read(ask: Ask, path: string, init: RequestInit = {}): Promise<unknown> {
  const { ensureWell } = await import("./api.ts");
  const answer = await ask(path, init);
  await ensureWell(answer, { misused: 2 });
  const type = answer.headers.get("content-type") ?? "";
  return type.startsWith("application/json") ? answer.json() : answer.text();
}

function linesOf(row: Json, { stdout }: Shell): string {
  // What is shown once comes first, alone in its line, as of the command itself.
  const secret = row["key"] ?? row["token"] ?? row["secret"];
  const isSecret = typeof secret === "string" && /^(?:trib_|trop_|whsec_)/.test(secret);
  const rest = Object.entries(row).filter(([, value]) => value !== secret);
  const hint = stdout.terminal ? "Keep it now: it is not stored and is not shown again.\n" : "";
  return isSecret
    ? `${secret}\n${hint}`
    : formatTable(rest.map(([name, value]) => [name, cell(value)]));
}

function tableOf(rows: readonly Json[]): string {
  const [first = {}] = rows;
  const names = Object.keys(first).filter((name) => !isObject(first[name]));
  const heads = names.map((name) => name.toUpperCase().replaceAll("_", " "));
  return formatTable([heads, ...rows.map((row) => names.map((name) => cell(row[name])))]);
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return "-";
  return typeof value === "string" ? value : JSON.stringify(value);
}
