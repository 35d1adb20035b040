import { mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { download, type Downloaded } from "./download.ts";
import { DamagedFileError, hashFile } from "./hash-file.ts";
import { hubProbe, type ModelAddress } from "./model-address.ts";
import { isIntact, type ExpectedFile } from "./weights-check.ts";
import { ensureModelFolder, modelFolders, type WeightsFolders } from "./weights-folders.ts";
import { lockWeights } from "./weights-lock.ts";
import { WeightsError, type WeightsParts } from "./weights.ts";

/** What was fetched from an address: the hash is the server's or the operator's, else of what came the first time. */
interface Manifest {
  readonly address: string;
  readonly files: readonly (ExpectedFile & { readonly name: string })[];
}

const manifestName = "manifest.json";

/** Path of the file to load; downloads what is missing or damaged. Throws a WeightsError. */
export async function ensureFetched(
  address: ModelAddress,
  folders: WeightsFolders,
  parts: WeightsParts,
): Promise<string> {
  for (const folder of modelFolders(folders)) {
    const path = await findIntact(join(folder, address.folder), address, parts);
    if (path !== null) return path;
  }
  try {
    const folder = join(await ensureModelFolder(folders), address.folder);
    await mkdir(folder, { recursive: true });
    await using held = new AsyncDisposableStack();
    held.use(await lockWeights(folder, parts.signal));
    // Another process may have fetched it meanwhile.
    return (await findIntact(folder, address, parts)) ?? (await fetchAll(folder, address, parts));
  } catch (error) {
    parts.signal.throwIfAborted();
    throw new WeightsError(
      `${address.name} could not be fetched: ${error instanceof Error ? error.message : String(error)}. See that this machine reaches that address (behind a ` +
        "proxy set HTTPS_PROXY); or put the .gguf file on this machine and set " +
        "TRIBUTARY_MODEL to its path; or set TRIBUTARY_DEPLOYMENT_URL to an OpenAI-compatible deployment.",
      { cause: error },
    );
  }
}

/** Addresses that were fetched, and where the file to load lies. */
export async function listFetched(
  folders: WeightsFolders,
): Promise<readonly { readonly address: string; readonly path: string; readonly bytes: number }[]> {
  const found = new Map<string, { address: string; path: string; bytes: number }>();
  for (const folder of modelFolders(folders)) {
    const names = await readdir(folder).catch(() => []);
    for (const name of names) {
      const manifest = await readManifest(join(folder, name));
      const [first] = manifest?.files ?? [];
      if (manifest === null || first === undefined || found.has(manifest.address)) continue;
      const bytes = manifest.files.reduce((sum, file) => sum + file.bytes, 0);
      const path = join(folder, name, first.name);
      found.set(manifest.address, { address: manifest.address, path, bytes });
    }
  }
  return [...found.values()];
}

async function findIntact(
  folder: string,
  address: ModelAddress,
  parts: WeightsParts,
): Promise<string | null> {
  const manifest = await readManifest(folder);
  const [first] = manifest?.files ?? [];
  if (manifest === null || first === undefined) return null;
  if (address.sha256 !== null && address.sha256 !== first.sha256) return null;
  for (const file of manifest.files) {
    if (!(await isIntact(join(folder, file.name), file, parts))) return null;
  }
  return join(folder, first.name);
}

async function fetchAll(
  folder: string,
  address: ModelAddress,
  parts: WeightsParts,
): Promise<string> {
  // The downloader takes a file of the right size for the right file, damaged or not.
  for (const name of await readdir(folder)) {
    if (!name.endsWith(partSuffix)) await rm(join(folder, name), { force: true });
  }
  const order = { ...hubProbe(address, parts.environment), folder, fileName: null };
  const fetched = await download(order, parts);
  const manifest = await checkFetched(folder, { address, fetched, signal: parts.signal });
  await writeManifest(folder, manifest);
  const path = await findIntact(folder, address, { ...parts, thorough: false });
  if (path === null) throw new DamagedFileError("the disk does not hold what was written to it");
  return path;
}

/** The downloader's name for a file that is not complete. */
const partSuffix = ".ipull";

interface Checking {
  readonly address: ModelAddress;
  readonly fetched: Downloaded;
  readonly signal: AbortSignal;
}

async function checkFetched(folder: string, checking: Checking): Promise<Manifest> {
  const { address, fetched, signal } = checking;
  const files: Manifest["files"][number][] = [];
  for (const { bytes, name } of fetched.files) {
    const path = join(folder, name);
    const sha256 = await hashFile(path, signal);
    const isFirst = files.length === 0;
    const wanted = isFirst ? (address.sha256 ?? fetched.sha256?.toLowerCase() ?? sha256) : sha256;
    if (sha256 !== wanted || !(await isGguf(path))) {
      await rm(path, { force: true });
      throw new DamagedFileError(
        sha256 === wanted
          ? `${name} is not in the GGUF format`
          : `${name} has the SHA-256 ${sha256}, expected was ${wanted}`,
      );
    }
    files.push({ name, bytes, sha256 });
  }
  return { address: address.name, files };
}

async function isGguf(path: string): Promise<boolean> {
  await using file = await open(path);
  const start = Buffer.alloc(4);
  await file.read(start, 0, start.length, 0);
  return start.toString("latin1") === "GGUF";
}

async function readManifest(folder: string): Promise<Manifest | null> {
  try {
    return JSON.parse(await readFile(join(folder, manifestName), "utf8")) as Manifest;
  } catch {
    return null;
  }
}

async function writeManifest(folder: string, manifest: Manifest): Promise<void> {
  const path = join(folder, manifestName);
  await writeFile(`${path}.new`, `${JSON.stringify(manifest, null, 2)}\n`);
  await rename(`${path}.new`, path);
}
