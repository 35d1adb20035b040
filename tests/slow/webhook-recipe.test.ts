import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import { readDocument } from "../documents/tables.ts";
import { eventually } from "../doubles/eventually.ts";
import { startScriptedDeployment } from "../doubles/scripted-deployment.ts";
import { defaultSettings } from "../ledger/support.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");

/** The fenced lines of a language in the document's recipe. */
function linesOf(language: string): string {
  const [, recipe = ""] = readDocument("docs/webhooks.md").split(
    "## A mail when an account runs low",
  );
  const [, lines = ""] = new RegExp(`\`\`\`${language}\\n(.*?)\`\`\``, "su").exec(recipe) ?? [];
  if (lines === "") throw new Error(`docs/webhooks.md: the recipe has no lines in ${language}`);
  return lines;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Runs the receiver as it is shown, with a program in the place of sendmail that keeps the mail. */
async function startReceiver(folder: string, port: number, secret: string): Promise<ChildProcess> {
  symlinkSync(join(root, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "receiver.mjs"), linesOf("js"));
  writeFileSync(join(folder, "sendmail"), `#!/bin/sh\ncat > "${folder}/mail"\n`);
  chmodSync(join(folder, "sendmail"), 0o755);
  const path = `${folder}${delimiter}${process.env["PATH"] ?? ""}`;
  const receiver = spawn(process.execPath, [join(folder, "receiver.mjs")], {
    env: { ...process.env, PATH: path, PORT: String(port), WEBHOOK_SECRET: secret },
    stdio: ["ignore", "inherit", "inherit"],
  });
  await eventually(
    () =>
      fetch(`http://127.0.0.1:${String(port)}/`).then(
        () => true,
        () => null,
      ),
    "the receiver listens",
  );
  return receiver;
}

/** The whole service as a process of its own; answers the address of its operators' listener. */
async function startService(opened: AsyncDisposableStack, folder: string): Promise<string> {
  const deployment = opened.use(await startScriptedDeployment());
  const port = await freePort();
  const service = spawn(process.execPath, [join(root, "src/cli/tributary.cjs"), "serve"], {
    cwd: folder,
    env: {
      PATH: process.env["PATH"],
      TRIBUTARY_PORT: "0",
      TRIBUTARY_OPERATOR_PORT: String(port),
      TRIBUTARY_DATA_DIR: folder,
      TRIBUTARY_DEPLOYMENT_URL: deployment.url,
      TRIBUTARY_WEBHOOK_PRIVATE: "allow",
      TRIBUTARY_LOG_LEVEL: "warn",
    },
    stdio: ["ignore", "inherit", "inherit"],
  });
  opened.defer(() => end(service, 0));
  const url = `http://127.0.0.1:${String(port)}`;
  await eventually(
    () =>
      fetch(`${url}/healthz`).then(
        () => true,
        () => null,
      ),
    "the operators' listener",
  );
  return url;
}

async function end(child: ChildProcess, code: number | null): Promise<void> {
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  expect((await exited)[0]).toBe(code);
}

test("an account that runs low becomes a mail, by the lines of docs/webhooks.md", async () => {
  await using opened = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "tributary-recipe-"));
  opened.defer(() => rmSync(folder, { recursive: true }));
  const operators = await startService(opened, folder);
  const ledger = opened.use(
    await openSqliteLedger(
      { ...defaultSettings, path: join(folder, "ledger.sqlite") },
      { now: Date.now },
    ),
  );
  const account = await ledger.createAccount("shop", 6_000_000_000n);
  const { secret: token } = await ledger.createOperator({
    name: "owner",
    role: "owner",
    expiresAtMs: null,
  });
  const port = await freePort();
  const script = linesOf("sh")
    .replaceAll("http://127.0.0.1:8081", operators)
    .replaceAll("https://shop.example/tributary", `http://127.0.0.1:${String(port)}/`);
  const { stdout } = await run("bash", ["-euc", `${script}echo; echo "$made"`], {
    env: { ...process.env, token, account: account.id },
  });
  const answers = stdout
    .trim()
    .split(/\n|(?<=\})(?=\{)/u)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const made = answers.at(-1) ?? {};
  expect(answers[0]).toMatchObject({ id: account.id, low_balance_at: "5" });
  const receiver = await startReceiver(folder, port, String(made["secret"]));
  opened.defer(() => end(receiver, null));
  const states = async (): Promise<readonly string[]> => {
    const page = { id: String(made["id"]), state: null, before: null, rowsMax: 9 };
    return (await ledger.pageDeliveries(page)).map(({ event, state }) => `${event.type} ${state}`);
  };
  const arrived = (...wanted: readonly string[]) =>
    eventually(
      async () => (String(await states()) === String(wanted) ? true : null),
      String(wanted),
    );
  // Its first try came before the receiver was there.
  await arrived("webhook.test delivered");
  expect(existsSync(join(folder, "mail"))).toBe(false);
  await ledger.creditAccount(account.id, -2_000_000_000n, null);
  await arrived("account.low_balance delivered", "webhook.test delivered");
  const mail = (): string | null => {
    const path = join(folder, "mail");
    return existsSync(path) && readFileSync(path, "utf8") !== ""
      ? readFileSync(path, "utf8")
      : null;
  };
  expect(await eventually(mail, "a mail")).toContain(`Subject: ${account.id} has 4 credits left`);
});
