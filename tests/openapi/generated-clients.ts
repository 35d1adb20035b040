import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runTool } from "./run-tool.ts";
import type { Served } from "./served.ts";

const lifeMs = 120_000;

// A shop that tops up and retries, as docs/operator-api.md has it, by clients that were generated from the document.

const typescriptRecipe = `
import createClient from "openapi-fetch";
import type { paths } from "./operators-types.d.ts";

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

// A question, and what it cost by its receipt, as a program with a key asks both.

const typescriptQuestion = `
import createClient from "openapi-fetch";
import type { paths } from "./callers-types.d.ts";

declare const process: { readonly argv: readonly string[] };
const [url, key] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: url ?? "", headers: { authorization: \`Bearer \${key ?? ""}\` } });
const asked = await client.POST("/v1/chat/completions", {
  body: { messages: [{ role: "user", content: "Hello" }], max_tokens: 50 },
});
if (asked.data === undefined) throw new Error(JSON.stringify(asked.error));
const text: string | null | undefined = "choices" in asked.data ? asked.data.choices[0]?.message.content : null;
const id = asked.response.headers.get("x-request-id") ?? "";
const receipt = await client.GET("/receipts/{id}", { params: { path: { id } } });
if (receipt.data === undefined) throw new Error(JSON.stringify(receipt.error));
const charged: string | null = "charged" in receipt.data ? receipt.data.charged : null;
console.log((text ?? "") !== "" && Number(charged) > 0 ? "answered and charged" : JSON.stringify([text, charged]));
`;

const pythonQuestion = `
import sys
from callers_client import AuthenticatedClient
from callers_client.api.default import create_chat_completion, show_receipt
from callers_client.models import ChatCompletionRequest

url, key = sys.argv[1:3]
client = AuthenticatedClient(base_url=url, token=key)
body = ChatCompletionRequest.from_dict({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 50})
asked = create_chat_completion.sync_detailed(client=client, body=body)
text = asked.parsed.choices[0].message.content
receipt = show_receipt.sync(id=asked.headers["x-request-id"], client=client)
print("answered and charged" if text and float(receipt.charged) > 0 else (text, receipt))
`;

/** A document with what is done by the clients that are made from it, and what these say in the end. */
interface Recipe {
  readonly name: "operators" | "callers";
  readonly typescript: string;
  readonly python: string;
  readonly says: string;
}

const recipes: readonly Recipe[] = [
  {
    name: "operators",
    typescript: typescriptRecipe,
    python: pythonRecipe,
    // After a top-up that counted once.
    says: "balance 26",
  },
  {
    name: "callers",
    typescript: typescriptQuestion,
    python: pythonQuestion,
    says: "answered and charged",
  },
];

/** Where the listener of a document is, and what it asks for. */
async function addressOf(
  { name }: Recipe,
  served: Served,
): Promise<readonly [url: string, secret: string]> {
  return name === "operators"
    ? [served.operators, served.token]
    : [served.url, (await served.newKeys(1))[0] ?? ""];
}

/** null: clients in TypeScript compile, and did the recipes; else what went wrong. */
export async function doTypescriptRecipes(
  served: Served,
  { node, scratch }: { readonly node: string; readonly scratch: string },
): Promise<string | null> {
  const folder = join(scratch, "typescript");
  mkdirSync(folder);
  symlinkSync(join(node, "node_modules"), join(folder, "node_modules"));
  writeFileSync(join(folder, "package.json"), '{"type":"module"}');
  // Else a member of a request that has a default would have to be sent.
  const given = ["--default-non-nullable", "false"];
  const options = ["--strict", "--module", "nodenext", "--target", "es2024", "--skipLibCheck"];
  for (const recipe of recipes) {
    const { name, says, typescript } = recipe;
    writeFileSync(join(folder, `${name}.ts`), typescript);
    const types = ["--output", `${name}-types.d.ts`, ...given];
    const problem = await runSteps(join(node, "node_modules/.bin"), folder, says, [
      ["node_modules/.bin/openapi-typescript", join(scratch, `${name}.json`), ...types],
      [
        "node_modules/.bin/tsc",
        `${name}.ts`,
        ...options,
        "--allowImportingTsExtensions",
        "--noEmit",
      ],
      [process.execPath, `${name}.ts`, ...(await addressOf(recipe, served))],
    ]);
    if (problem !== null) return problem;
  }
  return null;
}

/** The same for Python. */
export async function doPythonRecipes(
  served: Served,
  { python, scratch }: { readonly python: string; readonly scratch: string },
): Promise<string | null> {
  const folder = join(scratch, "python");
  mkdirSync(folder);
  const generate = [join(python, "bin/python"), "-m", "openapi_python_client", "generate"];
  for (const recipe of recipes) {
    const { name, says } = recipe;
    const client = `${name}_client`;
    writeFileSync(join(folder, `${name}.py`), recipe.python);
    writeFileSync(join(folder, "config.yml"), `package_name_override: ${client}\n`);
    const to = ["--output-path", client, "--meta", "none", "--config", "config.yml"];
    const problem = await runSteps(join(python, "bin"), folder, says, [
      [...generate, "--path", join(scratch, `${name}.json`), "--fail-on-warning", ...to],
      [join(python, "bin/python"), "-m", "compileall", "-q", client],
      [join(python, "bin/python"), `${name}.py`, ...(await addressOf(recipe, served))],
    ]);
    if (problem !== null) return problem;
  }
  return null;
}

/** Runs one after another; the last one has to say the word of the recipe. */
async function runSteps(
  programs: string,
  folder: string,
  says: string,
  steps: readonly (readonly string[])[],
): Promise<string | null> {
  let last = "";
  for (const step of steps) {
    const { code, output } = await runTool(folder, step, { lifeMs, programs });
    if (code !== 0) return `${step.slice(0, 2).join(" ")} ended with ${String(code)}:\n${output}`;
    last = output;
  }
  return last.includes(says) ? null : last;
}
