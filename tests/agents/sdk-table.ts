import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { isRecord } from "../cases/files.ts";
import { capabilities, lackOf } from "../clients/capabilities.ts";
import { nodePackages, pythonPackages } from "../clients/installed/packages.ts";
import { pathWithThisNode } from "./install.ts";

/** What the tests of the SDKs came to. */
export interface SdkResults {
  readonly table: readonly (readonly string[])[];
  /** What clients lack by their nature, in the order of the marks in the table. */
  readonly notes: readonly string[];
  readonly passed: number;
  readonly failed: number;
  /** One a failed test. */
  readonly failures: readonly string[];
}

/** One test as the runner reports it. */
export interface SeenTest {
  readonly suites: readonly string[];
  readonly title: string;
  /** Lacking: it was skipped, as its title says what the client does not have. */
  readonly outcome: "passed" | "failed" | "lacking";
  readonly words: string;
}

const root = join(import.meta.dirname, "../..");
const limitMs = 240_000;

/** Runs tests/clients: in the short lane without those that fold recorded streams alone, which `npm test` has too. */
export async function runSdkTests(all: boolean): Promise<SdkResults> {
  const folder = mkdtempSync(join(tmpdir(), "tributary-sdks-"));
  try {
    const file = join(folder, "results.json");
    const vitest = join(root, "node_modules/vitest/vitest.mjs");
    const config = join(import.meta.dirname, "vitest.config.ts");
    const options = ["run", "--config", config, "--reporter=json", `--outputFile=${file}`];
    if (!all) options.push("--exclude", "tests/clients/accumulators*");
    const runner = spawn(process.execPath, [vitest, ...options], {
      cwd: root,
      env: { ...process.env, PATH: pathWithThisNode() },
      stdio: ["ignore", "ignore", "inherit"],
      timeout: limitMs,
    });
    const [code] = (await once(runner, "exit")) as [number | null];
    const results = tabulate(readTests(JSON.parse(readFileSync(file, "utf8"))), readVersions());
    // A file that does not load fails the run without a failed test.
    const unseen = code !== 0 && results.failed === 0 ? 1 : 0;
    const failures = unseen === 0 ? results.failures : ["tests/clients: a file failed as a whole"];
    return { ...results, failed: results.failed + unseen, failures };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readTests(report: unknown): readonly SeenTest[] {
  const files = isRecord(report) ? report["testResults"] : null;
  if (!Array.isArray(files)) throw new Error("vitest wrote no report");
  return files.filter(isRecord).flatMap(({ assertionResults, name }) =>
    (Array.isArray(assertionResults) ? assertionResults : []).filter(isRecord).map((test) => {
      const words = Array.isArray(test["failureMessages"]) ? test["failureMessages"] : [];
      return seeTest({
        suites: [
          ...foldedBy(basename(String(name))),
          ...(Array.isArray(test["ancestorTitles"]) ? test["ancestorTitles"].map(String) : []),
        ],
        title: String(test["title"]),
        status: String(test["status"]),
        words: words.join("\n"),
      });
    }),
  );
}

/** The row of tests that fold recorded streams, which are no client's of their own. */
function foldedBy(file: string): readonly string[] {
  const sdk = /^accumulators-(.+)\.test\.ts$/u.exec(file)?.[1];
  return sdk === undefined ? [] : [`recorded streams: ${sdk}`];
}

/** One test of the report. Without a lack to tell, a test that did not run is one that failed. */
export function seeTest(test: {
  readonly suites: readonly string[];
  readonly title: string;
  readonly status: string;
  readonly words: string;
}): SeenTest {
  const { status, suites, title, words } = test;
  if (status === "passed") return { suites, title, outcome: "passed", words };
  const lack = status === "failed" ? null : lackOf(title);
  if (lack !== null) return { suites, title: lack, outcome: "lacking", words };
  return { suites, title, outcome: "failed", words: words === "" ? "it did not run" : words };
}

// What a client has besides the laws for all is in the last column.
const others = "its own";

interface Cell {
  passed: number;
  failed: number;
  readonly marks: Set<number>;
}

/** A row for each client, a column for each capability; `versions` of packages by their names. */
export function tabulate(
  tests: readonly SeenTest[],
  versions: Readonly<Record<string, string>>,
): SdkResults {
  const lawful = tests.filter(({ suites }) => columnOf(suites) !== others);
  const clients = [...new Set(lawful.map(({ suites }) => suites[0] ?? ""))];
  const longestFirst = clients.toSorted((a, b) => b.length - a.length);
  const rows = new Map<string, Map<string, Cell>>();
  const notes: string[] = [];
  for (const test of tests) {
    const { outcome, suites, title } = test;
    const [suite = ""] = suites;
    const client = longestFirst.find((name) => suite.startsWith(name)) ?? suite;
    const row = rows.get(client) ?? new Map<string, Cell>();
    const cell = row.get(columnOf(suites)) ?? { passed: 0, failed: 0, marks: new Set() };
    if (outcome !== "lacking") cell[outcome] += 1;
    else cell.marks.add(noteNumber(notes, title));
    row.set(columnOf(suites), cell);
    rows.set(client, row);
  }
  const columns = [...capabilities, others];
  const failed = tests.filter(({ outcome }) => outcome === "failed");
  return {
    table: [
      ["client", "version", ...columns],
      ...[...rows].map(([client, row]) => [
        client,
        packagesOf(client)
          .map((name) => versions[name] ?? "")
          .join(" / "),
        ...columns.map((column) => cellText(row.get(column))),
      ]),
    ],
    notes: notes.map((note, index) => `[${String(index + 1)}] ${note}`),
    passed: tests.filter(({ outcome }) => outcome === "passed").length,
    failed: failed.length,
    failures: failed.map(({ suites, title, words }) =>
      [...suites, title, words.slice(0, 600)].join(" > "),
    ),
  };
}

function noteNumber(notes: string[], note: string): number {
  const index = notes.indexOf(note);
  return index === -1 ? notes.push(note) : index + 1;
}

function columnOf(suites: readonly string[]): string {
  return capabilities.find((name) => suites[1] === name) ?? others;
}

function cellText(cell: Cell | undefined): string {
  if (cell === undefined) return "-";
  const marks = [...cell.marks].map((mark) => ` [${String(mark)}]`).join("");
  if (cell.failed > 0) return `${String(cell.failed)} FAILED${marks}`;
  return cell.passed === 0 ? `none${marks}` : `${String(cell.passed)} ok${marks}`;
}

/** What a client's row names the versions of. */
function packagesOf(client: string): readonly string[] {
  const provider = /^ai with (openai-compatible|openai|anthropic)/u.exec(client)?.[1];
  if (provider !== undefined) return ["ai", `@ai-sdk/${provider}`];
  if (client.startsWith("Python ")) return [`Python ${client.split(" ")[1] ?? ""}`];
  if (client.startsWith("LangChain ")) return [`@langchain/${client.split(" ")[1] ?? ""}`];
  if (client.startsWith("OpenAI Agents ")) return ["@openai/agents"];
  if (client.startsWith("openai ")) return ["openai"];
  return client === "anthropic" ? ["@anthropic-ai/sdk"] : [];
}

function readVersions(): Readonly<Record<string, string>> {
  const manifest: unknown = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  const ours = isRecord(manifest) ? manifest["devDependencies"] : null;
  return Object.fromEntries([
    ...Object.entries(isRecord(ours) ? ours : {}).map(([name, version]) => [name, String(version)]),
    ...Object.entries(nodePackages),
    ...Object.entries(pythonPackages).map(([name, version]) => [`Python ${name}`, version]),
  ]);
}
