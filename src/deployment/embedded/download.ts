import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { open, rename, rm, stat, type FileHandle } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import type { PackageIndex, WheelPlace } from "./package-index.ts";
import { reasonOf } from "./package-index.ts";

/** What is fetched, and what it must turn out to be. */
export interface DownloadOrder {
  readonly place: WheelPlace & { readonly type: "url" };
  readonly file: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** What a download needs from outside. */
export interface DownloadParts {
  readonly get: PackageIndex["get"];
  /** Bytes of this file that are here. */
  readonly onBytes: (bytes: number) => void;
  readonly signal: AbortSignal;
}

const attemptsMax = 4;
const firstPauseMs = 250;

/** Raised when what came is not what the catalog names. */
export class DamagedFileError extends Error {
  override readonly name = "DamagedFileError";
}

/**
 * Fetches into `file.part` and renames when the hash is right. What an interrupted try left is continued where the
 * server allows it, else begun again; a wrong hash after a continued try is tried once more from the start.
 */
export async function downloadFile(order: DownloadOrder, parts: DownloadParts): Promise<void> {
  const part = `${order.file}.part`;
  const continued = (await sizeOf(part)) > 0;
  await fillPart(order, parts);
  if ((await hashFile(part, parts.signal)) === order.sha256) return rename(part, order.file);
  await rm(part, { force: true });
  if (continued) return downloadFile(order, parts);
  throw new DamagedFileError(
    `the downloaded file is not the one that was expected (its SHA-256 is not ${order.sha256})`,
  );
}

async function fillPart(order: DownloadOrder, parts: DownloadParts): Promise<void> {
  let lastReason = "it ended early";
  let lastSize = -1;
  let attempts = 0;
  while (attempts < attemptsMax) {
    const size = await sizeOf(`${order.file}.part`);
    if (size === order.bytes) return;
    // Only tries that brought nothing count: a slow line that is often cut still gets there.
    attempts = size > lastSize ? 1 : attempts + 1;
    if (lastSize !== -1) await wait(firstPauseMs * attempts, undefined, { signal: parts.signal });
    lastSize = size;
    try {
      await fetchPart(order, size > order.bytes ? 0 : size, parts);
    } catch (error) {
      parts.signal.throwIfAborted();
      if (error instanceof DamagedFileError) throw error;
      lastReason = reasonOf(error);
    }
  }
  throw new Error(`the download from ${new URL(order.place.url).origin} broke off (${lastReason})`);
}

async function fetchPart(order: DownloadOrder, from: number, parts: DownloadParts): Promise<void> {
  const { authorization, url } = order.place;
  const headers: Record<string, string> = { "accept-encoding": "identity" };
  if (authorization !== null) headers["authorization"] = authorization;
  if (from > 0) headers["range"] = `bytes=${from}-`;
  const response = await parts.get(url, headers, parts.signal);
  const resumes =
    response.status === 206 &&
    (response.headers.get("content-range") ?? "").startsWith(`bytes ${from}-`);
  if (response.status === 416) await rm(`${order.file}.part`, { force: true });
  if (!response.ok || response.body === null) {
    await response.body?.cancel();
    throw new Error(`status ${response.status}`);
  }
  await using file = await open(`${order.file}.part`, resumes ? "a" : "w");
  await writeBody(response.body, file, { ...parts, from: resumes ? from : 0, bytes: order.bytes });
}

interface BodyTarget extends DownloadParts {
  readonly from: number;
  readonly bytes: number;
}

async function writeBody(
  body: AsyncIterable<Uint8Array>,
  file: FileHandle,
  target: BodyTarget,
): Promise<void> {
  let size = target.from;
  for await (const chunk of body) {
    size += chunk.byteLength;
    if (size > target.bytes) {
      await file.truncate(0);
      throw new DamagedFileError("the server sent more than the file that was expected");
    }
    await file.writeFile(chunk);
    target.onBytes(size);
  }
  await file.sync();
}

/** SHA-256 of a file in hexadecimal. */
export async function hashFile(path: string, signal?: AbortSignal): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of createReadStream(path, { highWaterMark: 256 * 1024 })) {
    signal?.throwIfAborted();
    hash.update(chunk as Buffer);
  }
  return hash.digest("hex");
}

/** Size in bytes; 0 when there is no such file. */
export async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch {
    return 0;
  }
}
