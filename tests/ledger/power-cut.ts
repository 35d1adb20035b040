import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openStore } from "../../src/ledger/sqlite/store.ts";
import { openRandom } from "../doubles/random.ts";
import { noteAnswers, prepareKillLedger, unkept } from "./kill-rounds.ts";
import { auditProblems, defaultSettings, temporaryLedger } from "./support.ts";

// A disk that loses its power forgets what was written and not synced, or some of it, in any order. What a process did to
// the ledger's files is recorded as system calls, and done again on files of the test up to each of its syncs.

/** What a process did, in order; its own words are what a caller has heard. */
export type Step =
  | { readonly type: "write"; readonly file: string; readonly at: number; readonly bytes: Buffer }
  | { readonly type: "truncate"; readonly file: string; readonly size: number }
  | { readonly type: "sync"; readonly file: string }
  | { readonly type: "said"; readonly text: string };

/** What was found at the cuts. */
export interface PowerCutReport {
  readonly cuts: number;
  /** Answers that had been heard before the last cut. */
  readonly answers: number;
  /** How often the ledger's own file was synced, which a checkpoint of its log does. */
  readonly checkpoints: number;
  readonly problems: readonly string[];
}

/** Why system calls cannot be recorded here; null: they can. */
export function whyNoRecording(): string | null {
  const { error, status } = spawnSync("strace", ["-o", "/dev/null", "true"], { stdio: "ignore" });
  if (error !== undefined) return "strace is not installed";
  return status === 0 ? null : "strace may not trace a process here";
}

/** Lets a process work on a ledger until it has given so many answers, and cuts its disk's power at many of its syncs. */
export async function cutPower(
  synchronous: "full" | "normal",
  lines: number,
): Promise<PowerCutReport> {
  using file = temporaryLedger();
  const keys = await prepareKillLedger(file.path);
  const disk = openDisk(file.folder);
  const trace = join(file.folder, "trace");
  await record([synchronous, file.path, ...keys], { trace, lines });
  const random = openRandom(1);
  const seen = new Map<string, string>();
  const report = { cuts: 0, answers: 0, checkpoints: 0 };
  const problems: string[] = [];
  const cut = (): void => {
    for (const keeps of [() => false, () => random() < 0.5]) {
      report.cuts += 1;
      const found = problemsAfter(disk, seen, keeps);
      problems.push(...found.map((problem) => `cut ${String(report.cuts)}: ${problem}`));
    }
  };
  const steps = readTrace(readFileSync(trace, "latin1"));
  const wanted = chooseCuts(steps, basename(file.path));
  for (const step of steps) {
    if (step.type === "said") report.answers += noteAnswers(step.text.split("\n"), seen);
    else if (step.file.startsWith(basename(file.path))) {
      if (step.type === "sync" && step.file === basename(file.path)) report.checkpoints += 1;
      if (wanted.has(step)) cut();
      disk.do(step);
    }
  }
  cut();
  return { ...report, problems };
}

/** Every fifth sync, and each of those around a checkpoint: of the ledger's log before it, of its file, of the next log. */
function chooseCuts(steps: readonly Step[], ledger: string): ReadonlySet<Step> {
  const syncs = steps.filter((step) => step.type === "sync");
  return new Set(
    syncs.filter(
      (_, at) =>
        at % 5 === 0 ||
        syncs.slice(Math.max(at - 3, 0), at + 3).some(({ file }) => file === ledger),
    ),
  );
}

async function record(
  parameters: readonly string[],
  { lines, trace }: { readonly lines: number; readonly trace: string },
): Promise<void> {
  const program = fileURLToPath(new URL("kill-child.ts", import.meta.url));
  const calls = "trace=write,pwrite64,fsync,fdatasync,ftruncate";
  // -D: the process is a child of this one, and its tracer ends after it.
  const how = ["-D", "-f", "-y", "-xx", "-s", "10000", "-e", "signal=none", "-e", calls];
  const child = spawn("strace", [...how, "-o", trace, process.execPath, program, ...parameters], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = 0;
  const closed = once(child, "close");
  await new Promise<void>((resolve) => {
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text.split("\n").length - 1;
      if (said >= lines) resolve();
    });
    void closed.then(() => resolve());
  });
  child.kill("SIGKILL");
  await closed;
  if (said < lines) throw new Error(`the process ended after ${String(said)} lines`);
}

const call = /^(\w+)\((\d+)<([^>]*)>(?:, (.*))?\) += \d+$/u;

/** The steps of a trace of strace. A step counts when it is done, but what is said when it begins. */
export function readTrace(trace: string): readonly Step[] {
  const begun = new Map<string, string>();
  const steps: Step[] = [];
  for (const line of trace.split("\n")) {
    const [, thread = "", text = ""] = /^(\d+) +(.*)$/u.exec(line) ?? [];
    const unfinished = " <unfinished ...>";
    if (text.endsWith(unfinished)) {
      const start = text.slice(0, -unfinished.length);
      begun.set(thread, start);
      if (start.startsWith("write(1<")) steps.push({ type: "said", text: saidIn(start) });
      continue;
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/u.exec(text);
    const whole = resumed === null ? text : (begun.get(thread) ?? "") + (resumed[1] ?? "");
    const [, name, descriptor, path = "", rest = ""] = call.exec(whole) ?? [];
    if (name === undefined && /^(pwrite|f).*\) += \d/u.test(whole))
      throw new Error(`a call that is not understood: ${whole.slice(0, 100)}`);
    const file = basename(unhex(path).toString("latin1"));
    if (name === "fsync" || name === "fdatasync") steps.push({ type: "sync", file });
    else if (name === "ftruncate") steps.push({ type: "truncate", file, size: Number(rest) });
    else if (name === "pwrite64") steps.push({ type: "write", file, ...writtenBy(rest) });
    else if (name === "write" && descriptor === "1" && resumed === null)
      steps.push({ type: "said", text: saidIn(whole) });
  }
  return steps;
}

function writtenBy(rest: string): { readonly at: number; readonly bytes: Buffer } {
  const [, text = "", length, at] = /^"([^"]*)", (\d+), (\d+)$/u.exec(rest) ?? [];
  const bytes = unhex(text);
  if (bytes.byteLength !== Number(length)) throw new Error(`not a whole write: ${length ?? rest}`);
  return { at: Number(at), bytes };
}

function saidIn(text: string): string {
  return unhex(/"([^"]*)"/u.exec(text)?.[1] ?? "").toString("utf8");
}

function unhex(text: string): Buffer {
  return Buffer.from(text.replaceAll("\\x", ""), "hex");
}

type FileStep = Exclude<Step, { readonly type: "said" }>;

interface Disk {
  do(step: FileStep): void;
  /** Makes the files as a cut leaves them: all that was synced, and of each sector since then what `keeps` says. */
  writeTo(folder: string, keeps: () => boolean): void;
}

const sectorBytes = 512;

/** A disk that holds the ledger's files of this folder. */
function openDisk(folder: string): Disk {
  const files = new Map<string, { synced: Buffer; unsynced: FileStep[] }>();
  for (const name of readdirSync(folder))
    files.set(name, { synced: readFileSync(join(folder, name)), unsynced: [] });
  const fileOf = (name: string) => {
    const file = files.get(name) ?? { synced: Buffer.alloc(0), unsynced: [] };
    files.set(name, file);
    return file;
  };
  return {
    do(step) {
      const file = fileOf(step.file);
      if (step.type !== "sync") {
        file.unsynced.push(step);
        return;
      }
      for (const one of file.unsynced) file.synced = apply(file.synced, one, () => true);
      file.unsynced = [];
    },
    writeTo(target, keeps) {
      for (const [name, { synced, unsynced }] of files) {
        let content = synced;
        for (const step of unsynced) content = apply(content, step, keeps);
        writeFileSync(join(target, name), content);
      }
    },
  };
}

function apply(before: Buffer, step: FileStep, keeps: () => boolean): Buffer {
  if (step.type === "sync") return before;
  if (step.type === "truncate") return keeps() ? ofSize(before, step.size) : before;
  const { at, bytes } = step;
  const after = ofSize(before, Math.max(before.byteLength, at + bytes.byteLength));
  for (let from = 0; from < bytes.byteLength;) {
    // To the end of the sector that it lies in.
    const to = Math.min(from + sectorBytes - ((at + from) % sectorBytes), bytes.byteLength);
    if (keeps()) bytes.copy(after, at + from, from, to);
    from = to;
  }
  return after;
}

function ofSize(before: Buffer, size: number): Buffer {
  const after = Buffer.alloc(size);
  before.copy(after);
  return after;
}

/** What is missing or wrong in the ledger that a start finds after the cut. */
function problemsAfter(
  disk: Disk,
  seen: ReadonlyMap<string, string>,
  keeps: () => boolean,
): readonly string[] {
  using place = temporaryLedger();
  const folder = join(place.folder, "after");
  mkdirSync(folder);
  disk.writeTo(folder, keeps);
  const path = join(folder, "ledger.sqlite");
  if (!existsSync(path)) return ["the ledger is gone"];
  try {
    openStore({ ...defaultSettings, path })[Symbol.dispose]();
    return [...auditProblems(path), ...unkept(path, seen)];
  } catch (error) {
    return [`it cannot be opened: ${String(error)}`];
  } finally {
    rmSync(folder, { recursive: true });
  }
}
