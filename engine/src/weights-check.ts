import { readFile, rm, stat, writeFile } from "node:fs/promises";
import { hashFile } from "./hash-file.ts";

/** What a file must be. */
export interface ExpectedFile {
  readonly bytes: number;
  readonly sha256: string;
}

/** How closely to look. `thorough`: read every byte, whatever an earlier look found. */
export interface Look {
  readonly thorough: boolean;
  readonly signal: AbortSignal;
}

/**
 * Whether the file is what it must be. Reading gigabytes would delay each start, so that a file whose hash was right
 * is trusted as long as its size and its times of change stay: the mark beside it keeps them. A disk that loses bits
 * leaves those as they are; a thorough look finds it.
 */
export async function isIntact(path: string, expected: ExpectedFile, look: Look): Promise<boolean> {
  const mark = await markOf(path, expected.sha256);
  if (mark?.bytes !== expected.bytes) return false;
  if (!look.thorough && (await readMark(path)) === mark.text) return true;
  if ((await hashFile(path, look.signal)) !== expected.sha256) return false;
  // A folder that cannot be written only makes the next start slower.
  await writeFile(markPath(path), mark.text).catch(() => undefined);
  return true;
}

/** Forgets that the file was checked: one that does not load may be damaged. */
export async function distrust(path: string): Promise<void> {
  await rm(markPath(path), { force: true });
}

function markPath(path: string): string {
  return `${path}.checked`;
}

interface Mark {
  readonly bytes: number;
  readonly text: string;
}

async function markOf(path: string, sha256: string): Promise<Mark | null> {
  try {
    const { ctimeNs, mtimeNs, size } = await stat(path, { bigint: true });
    return { bytes: Number(size), text: `${[sha256, size, mtimeNs, ctimeNs].join(" ")}\n` };
  } catch {
    return null;
  }
}

async function readMark(path: string): Promise<string | null> {
  return readFile(markPath(path), "utf8").catch(() => null);
}
