import { constants } from "node:fs";
import { access, mkdir } from "node:fs/promises";
import { join } from "node:path";

/** Where weights may lie. */
export interface WeightsFolders {
  /** The service's own; weights in it are used, and fetched into it where the cache cannot be written. */
  readonly dataDir: string;
  /** Shared by every service of this user. */
  readonly cacheDir: string;
}

/** Folders to look in, the service's own first. */
export function modelFolders({ cacheDir, dataDir }: WeightsFolders): readonly [string, string] {
  return [join(dataDir, "models"), join(cacheDir, "models")];
}

/** The folder to fetch into: the cache, else the service's own. Makes it. */
export async function ensureModelFolder(folders: WeightsFolders): Promise<string> {
  const [own, shared] = modelFolders(folders);
  try {
    await mkdir(shared, { recursive: true });
    await access(shared, constants.W_OK);
    return shared;
  } catch {
    await mkdir(own, { recursive: true });
    return own;
  }
}
