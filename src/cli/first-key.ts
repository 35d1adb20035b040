import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Writes the first key as the one line of a file in the data folder that this user alone can read; returns its path. */
export function writeFirstKey(dataDir: string, key: string): string {
  const path = join(dataDir, "first-key");
  // A ledger that is elsewhere has not made the folder.
  if (!existsSync(dataDir)) mkdirSync(dataDir, { mode: 0o700 });
  // One that is there belongs to a ledger that was empty as well, and may be readable by others.
  rmSync(path, { force: true });
  writeFileSync(path, `${key}\n`, { mode: 0o600, flag: "wx" });
  return path;
}
