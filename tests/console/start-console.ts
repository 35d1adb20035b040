import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { OperatorRole } from "../../src/ledger/administration/operator-administration.ts";
import { type Program, startLivingProgram } from "../cli/start-program.ts";
import {
  type ScriptedDeployment,
  startScriptedDeployment,
} from "../doubles/scripted-deployment.ts";
import { openOperatorsAnswerCheck } from "../operators/check-operator-answer.ts";
import { inspectWith } from "../wire/watch-answers.ts";
import { fillLedger, type LedgerSize } from "./fill-ledger.ts";

/** A service as `npm start` runs it, over a deployment that does what a test says. */
export interface ConsoleService extends AsyncDisposable {
  /** Where callers come. */
  readonly url: string;
  /** Where operators come. */
  readonly operatorUrl: string;
  readonly deployment: ScriptedDeployment;
  /** A link that signs in once. */
  loginLink(): Promise<string>;
  newOperator(role: OperatorRole): Promise<{ readonly id: string; readonly token: string }>;
  /** What a command lists. */
  list(what: "account"): Promise<readonly Readonly<Record<string, string>>[]>;
  /** Runs a command beside the service; what it printed, parsed. */
  command(...words: readonly string[]): Promise<Readonly<Record<string, string>>>;
}

/** Longer than the lane may take; a program that is left behind ends with it. */
const lifeMs = 1_800_000;

/** Starts the service on a ledger that has so much, or on a copy of the one in a folder; null: one without anything. */
export async function startConsole(begin: LedgerSize | string | null): Promise<ConsoleService> {
  inspectWith(openOperatorsAnswerCheck);
  await using opened = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "tributary-console-"));
  opened.defer(() => rmSync(folder, { recursive: true, force: true }));
  if (typeof begin === "string") cpSync(begin, folder, { recursive: true });
  else if (begin !== null) await fillLedger(join(folder, "ledger.sqlite"), begin);
  const deployment = opened.use(await startScriptedDeployment());
  const environment = {
    TRIBUTARY_PORT: "0",
    TRIBUTARY_DATA_DIR: folder,
    TRIBUTARY_DEPLOYMENT_URL: deployment.url,
    TRIBUTARY_FIRST_ACCOUNT: "none",
    // What a webhook sends comes back to this machine.
    TRIBUTARY_WEBHOOK_PRIVATE: "allow",
  };
  const start = (...words: readonly string[]): Program =>
    startLivingProgram({ words, folder, environment, lifeMs });
  const program = opened.use(start("serve", "--json"));
  const [, operatorUrl = ""] = await program.waitFor(/"address":"(http:[^"]+)"/);
  const [, url = ""] = await program.waitFor(/"url":"(http:[^"]+)".*"listening"/);
  const command: ConsoleService["command"] = async (...words) => {
    await using running = start(...words, "--json");
    const code = await running.exited;
    if (code !== 0)
      throw new Error(`${words.join(" ")}: exit ${String(code)}: ${running.stderr()}`);
    return JSON.parse(running.stdout()) as Readonly<Record<string, string>>;
  };
  let operators = 0;
  const owned = opened.move();
  return {
    url,
    operatorUrl,
    deployment,
    command,
    list: async (what) =>
      (await command(what, "list")) as unknown as readonly Readonly<Record<string, string>>[],
    async loginLink() {
      const { link = "" } = await command("operator", "login-link");
      // The command knows the port that is set, which is 0.
      return link.replace(/^http:\/\/[^/]+/, operatorUrl);
    },
    async newOperator(role) {
      operators += 1;
      const name = `operator ${String(operators)}`;
      const { id = "", token = "" } = await command("operator", "create", name, "--role", role);
      return { id, token };
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** A chunk of an answer as the deployment streams it. */
export function chunk(delta: object, rest: object = {}): string {
  const choice = { index: 0, delta, finish_reason: null, ...rest };
  return `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [choice] })}\n\n`;
}
