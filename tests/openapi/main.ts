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
    /** Of each operation, drawn at random, beside those that follow from its schema alone. */
    examples: { type: "string", default: "20" },
    /** Goes on, with the next seed, until each document had so many cases on each store. */
    cases: { type: "string", default: "0" },
    seed: { type: "string", default: "1" },
    /** One of them alone, else both: what goes on for long on one store says nothing new on the other. */
    store: { type: "string" },
  },
});
const bothStores: readonly Store[] = ["sqlite", "postgres"];
const stores = bothStores.filter((one) => one === (values.store ?? one));
if (stores.length === 0) throw new Error("--store is sqlite or postgres");
const casesWanted = Number(values.cases);
const longestMs = 3_600_000;
// A key may look at its account ten times a second: with one key most looks of a round would be refused for that.
const callersKeys = 100;

/** A document, with what asks by it. */
interface Document {
  readonly name: string;
  readonly base: string;
  readonly path: string;
  readonly secrets: () => Promise<readonly string[]>;
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
  for (const store of stores) await tryStore(store);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
process.stdout.write(`\n${String(passed)} passed, ${String(failed)} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;

async function tryStore(store: Store): Promise<void> {
  await using served = await serve(store, longestMs);
  for (const document of await documentsOf(served)) {
    if (store === stores[0]) await lint(document);
    await tryDocument(document, store);
  }
  if (store === "postgres") return;
  report("TypeScript clients", await doTypescriptRecipes(served, { node, scratch }));
  report("Python clients", await doPythonRecipes(served, { python, scratch }));
}

async function documentsOf(served: Served): Promise<readonly Document[]> {
  const { newKeys, operators, token, url } = served;
  const all: readonly Document[] = [
    {
      name: "operators",
      base: operators,
      path: "/api/v1/openapi.json",
      secrets: () => Promise.resolve([token]),
      exceptions: operatorExceptions,
    },
    {
      name: "callers",
      base: url,
      path: "/openapi.json",
      secrets: () => newKeys(callersKeys),
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
  const hooks = join(scratch, `${name}-secrets.py`);
  writeFileSync(hooks, hooksFor(await document.secrets()));
  const wanted = checks.filter((check) => !Object.hasOwn(exceptions.checks, check));
  let cases = 0;
  for (let round = 0; round === 0 || cases < casesWanted; round += 1) {
    const startedMs = performance.now();
    const { code, output } = await runTool(
      scratch,
      [
        // The programs beside it have the path at which they were installed at first.
        ...[join(python, "bin/python"), "-m", "schemathesis.cli"],
        ...["run", base + path, "--url", base, "--no-color", "--warnings", "off"],
        ...["--phases", phasesOf(store, round).join(","), "--checks", wanted.join(",")],
        // No time bounds a round: what it asks would be less on a slower machine, and else on a faster one.
        ...["--max-examples", values.examples, "--suppress-health-check", "too_slow"],
        ...[
          "--continue-on-failure",
          "--seed",
          String(Number(values.seed) + round),
          "--request-timeout",
          "120",
        ],
        ...Object.keys(exceptions.operations).flatMap((id) => ["--exclude-operation-id", id]),
      ],
      {
        lifeMs: longestMs,
        environment: { SCHEMATHESIS_HOOKS: hooks },
      },
    );
    const generated = Number(/(\d+) generated/.exec(output)?.[1] ?? "0");
    cases += generated;
    const clean = code === 0 && generated > 0;
    const seconds = Math.round((performance.now() - startedMs) / 1_000);
    const title = `schemathesis: ${name} on ${store}, ${String(generated)} cases in ${String(seconds)} s`;
    report(title, clean ? null : output);
    if (!clean) return;
  }
}

/**
 * What follows from the schemas alone is most of all cases, and the same on both stores and in each round: on PostgreSQL it
 * is asked only where many cases are wanted. tests/slow/hostile-requests.test.ts asks what stores could take differently.
 */
function phasesOf(store: Store, round: number): readonly string[] {
  const whole = round === 0 && (store === "sqlite" || casesWanted > 0);
  return whole ? ["examples", "coverage", "fuzzing"] : ["fuzzing"];
}

/** Each request goes with the next secret. */
function hooksFor(secrets: readonly string[]): string {
  return `
import itertools
import schemathesis

secrets = itertools.cycle(${JSON.stringify(secrets)})

@schemathesis.auth(refresh_interval=None)
class NextSecret:
    def get(self, case, context):
        return next(secrets)

    def set(self, case, data, context):
        case.headers["Authorization"] = "Bearer " + data
`;
}

/** `problem`: what a tool said, or null where all is well. */
function report(title: string, problem: string | null): void {
  if (problem === null) passed += 1;
  else failed += 1;
  process.stdout.write(problem === null ? `ok      ${title}\n` : `FAILED  ${title}\n${problem}\n`);
}
