import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isRecord } from "../cases/files.ts";
import { pathWithThisNode } from "./install.ts";

/** What the tests of the SDKs came to. */
export interface SdkResults {
  readonly table: readonly (readonly string[])[];
  readonly passed: number;
  readonly failed: number;
  /** One a failed test. */
  readonly failures: readonly string[];
}

interface SeenTest {
  readonly suites: readonly string[];
  readonly title: string;
  readonly ok: boolean;
  readonly words: string;
}

const root = join(import.meta.dirname, "../..");
const limitMs = 240_000;

/** Runs tests/clients: in the short lane without those that fold recorded streams alone, which `npm test` has too. */
export function runSdkTests(all: boolean): SdkResults {
  const folder = mkdtempSync(join(tmpdir(), "tributary-sdks-"));
  try {
    const file = join(folder, "results.json");
    const vitest = join(root, "node_modules/vitest/vitest.mjs");
    const options = ["run", "tests/clients", "--reporter=json", `--outputFile=${file}`];
    if (!all) options.push("--exclude", "tests/clients/accumulators*");
    const ran = spawnSync(process.execPath, [vitest, ...options], {
      cwd: root,
      env: { ...process.env, PATH: pathWithThisNode() },
      stdio: ["ignore", "ignore", "inherit"],
      timeout: limitMs,
    });
    const tests = readTests(JSON.parse(readFileSync(file, "utf8")));
    const results = tabulate(tests);
    // A file that does not load fails the run without a failed test.
    const unseen = ran.status !== 0 && results.failed === 0 ? 1 : 0;
    const failures = unseen === 0 ? results.failures : ["tests/clients: a file failed as a whole"];
    return { ...results, failed: results.failed + unseen, failures };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readTests(report: unknown): readonly SeenTest[] {
  const files = isRecord(report) ? report["testResults"] : null;
  if (!Array.isArray(files)) throw new Error("vitest wrote no report");
  return files.filter(isRecord).flatMap(({ assertionResults }) =>
    (Array.isArray(assertionResults) ? assertionResults : []).filter(isRecord).map((test) => ({
      suites: Array.isArray(test["ancestorTitles"]) ? test["ancestorTitles"].map(String) : [],
      title: String(test["title"]),
      ok: test["status"] === "passed",
      words: Array.isArray(test["failureMessages"]) ? test["failureMessages"].join("\n") : "",
    })),
  );
}

// The suites that every SDK goes through; what a client has besides is in the last column.
const laws = ["answers", "tool loops", "errors", "leaving", "patience"];
const others = "its own";

/** A row for each client, a column for each suite of laws. */
export function tabulate(tests: readonly SeenTest[]): SdkResults {
  const lawful = tests.filter(({ suites }) => lawOf(suites) !== others);
  const clients = [...new Set(lawful.map(({ suites }) => suites[0] ?? ""))];
  const rows = new Map<string, Map<string, { ok: number; failed: number }>>();
  for (const { ok, suites } of tests) {
    const [suite = ""] = suites;
    const longestFirst = clients.toSorted((a, b) => b.length - a.length);
    const client = longestFirst.find((name) => suite.startsWith(name)) ?? suite;
    const row = rows.get(client) ?? new Map<string, { ok: number; failed: number }>();
    const cell = row.get(lawOf(suites)) ?? { ok: 0, failed: 0 };
    if (ok) cell.ok += 1;
    else cell.failed += 1;
    row.set(lawOf(suites), cell);
    rows.set(client, row);
  }
  const columns = [...laws, others];
  const versions = readVersions();
  const lines = [...rows].map(([client, row]) => [
    client,
    versionsOf(client, versions),
    ...columns.map((column) => cellText(row.get(column))),
  ]);
  const failed = tests.filter(({ ok }) => !ok);
  return {
    table: [["client", "version", ...columns], ...lines],
    passed: tests.length - failed.length,
    failed: failed.length,
    failures: failed.map(({ suites, title, words }) =>
      [...suites, title, words.slice(0, 600)].join(" > "),
    ),
  };
}

function lawOf(suites: readonly string[]): string {
  // "leaving" has a suite for streams and one for bodies.
  return laws.find((law) => suites[1]?.split(",")[0] === law) ?? others;
}

function cellText(cell: { readonly ok: number; readonly failed: number } | undefined): string {
  if (cell === undefined) return "-";
  return cell.failed === 0 ? `${String(cell.ok)} ok` : `${String(cell.failed)} FAILED`;
}

function readVersions(): Readonly<Record<string, unknown>> {
  const manifest: unknown = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const versions = isRecord(manifest) ? manifest["devDependencies"] : {};
  return isRecord(versions) ? versions : {};
}

function versionsOf(client: string, versions: Readonly<Record<string, unknown>>): string {
  const provider = /^ai with (openai-compatible|openai|anthropic)/u.exec(client)?.[1];
  const [sdk = ""] = client.split(/[ ,']/u);
  const names = provider === undefined ? [sdk, `@${sdk}-ai/sdk`] : ["ai", `@ai-sdk/${provider}`];
  return names
    .map((name) => versions[name])
    .filter((version) => typeof version === "string")
    .join(" / ");
}
