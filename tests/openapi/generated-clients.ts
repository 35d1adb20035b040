import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runTool } from "./run-tool.ts";
import type { Served } from "./served.ts";

const lifeMs = 120_000;

// A shop that tops up and retries, as docs/operator-api.md has it, by clients that were generated from the document.

const typescriptRecipe = `
import createClient from "openapi-fetch";
import type { paths } from "./operators.d.ts";

declare const process: { readonly argv: readonly string[] };
const [url, token] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url ?? "", headers: { authorization: \`Bearer \${token ?? ""}\` } });
const made = await client.POST("/api/v1/accounts", { body: { name: "generated", credit: "1" } });
if (made.data === undefined) throw new Error(JSON.stringify(made.error));
const { id } = made.data;
for (let tries = 0; tries < 2; tries += 1) {
  const credited = await client.POST("/api/v1/accounts/{id}/credits", {
    params: { path: { id } },
    headers: { "idempotency-key": "payment-1" },
    body: { amount: "25", note: "payment 1" },
  });
  if (credited.error !== undefined) throw new Error(JSON.stringify(credited.error));
}
const shown = await client.GET("/api/v1/accounts/{id}", { params: { path: { id } } });
const balance: string | undefined = shown.data?.balance;
console.log(\`balance \${balance ?? "unknown"}\`);
`;

const pythonRecipe = `
import sys
from operators_client import AuthenticatedClient
from operators_client.api.default import add_credit, create_account, show_account
from operators_client.models import Credit, NewAccount

url, token = sys.argv[1:3]
client = AuthenticatedClient(base_url=url, token=token).with_headers({"idempotency-key": "payment-2"})
account = create_account.sync(client=client, body=NewAccount(name="generated", credit="1"))
for _ in range(2):
    add_credit.sync(client=client, id=account.id, body=Credit(amount="25", note="payment 2"))
print("balance", show_account.sync(client=client, id=account.id).balance)
`;

/** null: it compiles, and did the recipe; else what went wrong. */
export async function doTypescriptRecipe(
  { operators, token }: Served,
  { node, scratch }: { readonly node: string; readonly scratch: string },
): Promise<string | null> {
  const folder = join(scratch, "typescript");
  mkdirSync(folder);
  symlinkSync(join(node, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "recipe.ts"), typescriptRecipe);
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  const document = join(scratch, "operators.json");
  // Else a member of a request that has a default would have to be sent.
  const generated = ["--output", "operators.d.ts", "--default-non-nullable", "false"];
  const options = ["--strict", "--module", "nodenext", "--target", "es2024", "--skipLibCheck"];
  return runSteps(join(node, "node_modules/.bin"), folder, [
    ["node_modules/.bin/openapi-typescript", document, ...generated],
    ["node_modules/.bin/tsc", "recipe.ts", ...options, "--allowImportingTsExtensions", "--noEmit"],
    [process.execPath, "recipe.ts", operators, token],
  ]);
}

/** The same for Python. */
export async function doPythonRecipe(
  { operators, token }: Served,
  { python, scratch }: { readonly python: string; readonly scratch: string },
): Promise<string | null> {
  const folder = join(scratch, "python");
  mkdirSync(folder);
  writeFileSync(join(folder, "recipe.py"), pythonRecipe);
  writeFileSync(join(folder, "config.yml"), "package_name_override: operators_client\n");
  const generate = [join(python, "bin/python"), "-m", "openapi_python_client", "generate"];
  const to = ["--output-path", "operators_client", "--meta", "none", "--config", "config.yml"];
  return runSteps(join(python, "bin"), folder, [
    [...generate, "--path", join(scratch, "operators.json"), "--fail-on-warning", ...to],
    [join(python, "bin/python"), "-m", "compileall", "-q", "operators_client"],
    [join(python, "bin/python"), "recipe.py", operators, token],
  ]);
}

/** Runs one after another; the last one prints the balance after a top-up that counted once. */
async function runSteps(
  programs: string,
  folder: string,
  steps: readonly (readonly string[])[],
): Promise<string | null> {
  let last = "";
  for (const step of steps) {
    const { code, output } = await runTool(folder, step, { lifeMs, programs });
    if (code !== 0) return `${step.slice(0, 2).join(" ")} ended with ${String(code)}:\n${output}`;
    last = output;
  }
  return last.includes("balance 26") ? null : last;
}
