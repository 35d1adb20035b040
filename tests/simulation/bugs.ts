import { spawn, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** What the simulation made of one planted bug. */
export interface BugReport {
  readonly bug: string;
  /** null: not found. */
  readonly seed: number | null;
  readonly rule: string;
  readonly seconds: number;
}

const root = join(import.meta.dirname, "../..");
const folders = {
  sqlite: join(import.meta.dirname, "bugs"),
  postgres: join(import.meta.dirname, "bugs/postgres"),
} as const;

/** Where the bugs of a store are, and what runs there. */
export type BugStore = keyof typeof folders;

// A machine that does much else at the same time takes ten times as long as an idle one.
const limitMs = 300_000;

/** The bugs there are. */
export function listBugs(store: BugStore): string[] {
  return readdirSync(folders[store])
    .filter((name) => name.endsWith(".patch"))
    .map((name) => name.slice(0, -".patch".length))
    .toSorted();
}

/** Where bugs are looked for: the folder of the socket of a PostgreSQL, which is started once; null: in memory. */
export interface BugHunt extends AsyncDisposable {
  /** Plants one bug in a copy of the sources, and runs up to so many seeds there. */
  find(bug: string, seeds: number): Promise<BugReport>;
}

/** Opens what the copies share. */
export async function openBugHunt(store: BugStore): Promise<BugHunt> {
  if (store === "sqlite")
    return {
      find: (bug, seeds) => findBug(bug, store, ["--seeds", String(seeds)]),
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  const { startPostgres } = await import("../ledger/postgres-server.ts");
  const server = await startPostgres();
  const folder = dirname(server.socket);
  return {
    find: (bug, seeds) =>
      findBug(bug, store, [
        "--seeds",
        String(seeds),
        "--server",
        folder,
        "--database",
        nameOf(bug),
      ]),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

function nameOf(bug: string): string {
  return bug.replaceAll("-", "_");
}

async function findBug(
  bug: string,
  store: BugStore,
  options: readonly string[],
): Promise<BugReport> {
  const startedMs = performance.now();
  const copy = mkdtempSync(join(tmpdir(), "tributary-bug-"));
  try {
    for (const name of ["package.json", "src", "tests/simulation", "tests/ledger"])
      cpSync(join(root, name), join(copy, name), { recursive: true });
    symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
    const planted = spawnSync("git", ["apply", "-C1", join(folders[store], `${bug}.patch`)], {
      cwd: copy,
      encoding: "utf8",
    });
    if (planted.status !== 0)
      throw new Error(
        `${bug}.patch does not apply: ${planted.stderr}${String(planted.error ?? "")}`,
      );
    const printed = await simulateIn(copy, store, options);
    // A copy that does not run at all has found nothing.
    const seed = /^seed (\d+): (?!no crash)(.+)$/m.exec(printed);
    const seconds = (performance.now() - startedMs) / 1_000;
    if (seed === null) return { bug, seed: null, rule: lastLine(printed), seconds };
    return { bug, seed: Number(seed[1]), rule: seed[2] ?? "", seconds };
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function simulateIn(copy: string, store: BugStore, options: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      ["tests/simulation/main.ts", ...options, "--store", store, "--brief"],
      { cwd: copy, stdio: ["ignore", "pipe", "pipe"], timeout: limitMs, killSignal: "SIGKILL" },
    );
    let printed = "";
    const add = (text: string): void => void (printed += text);
    child.stdout.setEncoding("utf8").on("data", add);
    child.stderr.setEncoding("utf8").on("data", add);
    child.on("error", reject);
    child.on("close", () => {
      resolve(printed);
    });
  });
}

function lastLine(text: string): string {
  return text.trim().split("\n").at(-1) ?? "";
}
