import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { installForPython, installFromNpm } from "../agents/install.ts";
import { doPythonRecipes, doTypescriptRecipes } from "./generated-clients.ts";
import { callerExceptions, checks, type Exceptions, operatorExceptions } from "./exceptions.ts";
import { nodeTools, pythonTools } from "./packages.ts";
import { runTool } from "./run-tool.ts";
import { serve, type Served, type Store } from "./served.ts";

// Both OpenAPI documents of a running service: a linter has nothing to say of them, schemathesis finds no answer that is
// not as they say, on each store, and clients that others generate from them do their work.

const { values } = parseArgs({
  options: {
    /** For each document on each store, so that all of them end within two minutes. */
    seconds: { type: "string", default: "25" },
    /** Goes on until each document had so many cases, over both stores. */
    cases: { type: "string", default: "0" },
    seed: { type: "string", default: "1" },
  },
});
const seconds = Number(values.seconds);
const casesWanted = Number(values.cases);
const longestMs = casesWanted > 0 ? 3_600_000 : 340_000;

/** A document, with what asks by it. */
interface Document {
  readonly name: string;
  readonly base: string;
  readonly path: string;
  readonly secret: () => Promise<string>;
  readonly exceptions: Exceptions;
}

let passed = 0;
let failed = 0;
const [python, node] = await Promise.all([
  installForPython(pythonTools),
  installFromNpm(nodeTools),
]);
const scratch = mkdtempSync(join(tmpdir(), "tributary-openapi-work-"));
try {
  for (const store of ["sqlite", "postgres"] as const) await tryStore(store);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
process.stdout.write(`\n${String(passed)} passed, ${String(failed)} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;

async function tryStore(store: Store): Promise<void> {
  await using served = await serve(store, longestMs);
  for (const document of await documentsOf(served)) {
    if (store === "sqlite") await lint(document);
    await tryDocument(document, store);
  }
  if (store === "postgres") return;
  report("TypeScript clients", await doTypescriptRecipes(served, { node, scratch }));
  report("Python clients", await doPythonRecipes(served, { python, scratch }));
}

async function documentsOf(served: Served): Promise<readonly Document[]> {
  const { newKey, operators, token, url } = served;
  const all: readonly Document[] = [
    {
      name: "operators",
      base: operators,
      path: "/api/v1/openapi.json",
      secret: () => Promise.resolve(token),
      exceptions: operatorExceptions,
    },
    {
      name: "callers",
      base: url,
      path: "/openapi.json",
      secret: newKey,
      exceptions: callerExceptions,
    },
  ];
  const found: Document[] = [];
  for (const document of all) {
    const answer = await fetch(document.base + document.path);
    writeFileSync(fileOf(document), await answer.text());
    if (answer.ok) found.push(document);
    else report(`the document for ${document.name}`, `answered ${String(answer.status)}`);
  }
  return found;
}

function fileOf({ name }: Pick<Document, "name">): string {
  return join(scratch, `${name}.json`);
}

async function lint(document: Document): Promise<void> {
  const redocly = join(node, "node_modules/.bin/redocly");
  const words = [redocly, "lint", fileOf(document), "--extends=recommended", "--format=stylish"];
  const environment = { REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" };
  const { code, output } = await runTool(scratch, words, { lifeMs: 60_000, environment });
  const clean = code === 0 && !/\bwarnings?\b/i.test(output);
  report(`redocly: ${document.name}`, clean ? null : output);
}

async function tryDocument(document: Document, store: Store): Promise<void> {
  const { base, exceptions, name, path } = document;
  const secret = await document.secret();
  const wanted = checks.filter((check) => !Object.hasOwn(exceptions.checks, check));
  let cases = 0;
  for (let round = 0; round === 0 || cases < casesWanted / 2; round += 1) {
    const { code, output } = await runTool(
      scratch,
      [
        // The programs beside it have the path at which they were installed at first.
        ...[join(python, "bin/python"), "-m", "schemathesis.cli"],
        ...["run", base + path, "--url", base, "--no-color", "--warnings", "off"],
        ...["--header", `Authorization: Bearer ${secret}`],
        ...["--phases", "examples,coverage,fuzzing", "--checks", wanted.join(",")],
        ...["--max-time", String(casesWanted > 0 ? 120 : seconds), "--continue-on-failure"],
        ...["--seed", String(Number(values.seed) + round), "--request-timeout", "30"],
        ...Object.keys(exceptions.operations).flatMap((id) => ["--exclude-operation-id", id]),
      ],
      { lifeMs: 300_000 },
    );
    const generated = Number(/(\d+) generated/.exec(output)?.[1] ?? "0");
    cases += generated;
    const clean = code === 0 && generated > 0;
    const title = `schemathesis: ${name} on ${store}, ${String(generated)} cases`;
    report(title, clean ? null : output);
    if (!clean) return;
  }
}

/** `problem`: what a tool said, or null where all is well. */
function report(title: string, problem: string | null): void {
  if (problem === null) passed += 1;
  else failed += 1;
  process.stdout.write(problem === null ? `ok      ${title}\n` : `FAILED  ${title}\n${problem}\n`);
}
