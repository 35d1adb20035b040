import { createReadStream } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import type { Readable } from "node:stream";
import { createInflateRaw } from "node:zlib";

const endSignature = 0x06054b50;
const endBytes = 22;
const commentBytesMax = 65_535;
const entrySignature = 0x02014b50;
const entryBytes = 46;
const localSignature = 0x04034b50;
const localBytes = 30;
const stored = 0;
const deflated = 8;

/** The bytes of one member of a zip file. Reads the directory and that member only; no zip64, no encryption. */
export async function openZipMember(path: string, member: string): Promise<Readable> {
  await using file = await open(path);
  const entry = await findEntry(file, member);
  const local = await readAt(file, entry.localAt, localBytes);
  if (local.readUInt32LE(0) !== localSignature) throw new Error(`${path} is a damaged zip file`);
  const start = entry.localAt + localBytes + local.readUInt16LE(26) + local.readUInt16LE(28);
  const packed = createReadStream(path, {
    start,
    end: Math.max(start, start + entry.packedBytes - 1),
    highWaterMark: 256 * 1024,
  });
  if (entry.method === stored) return packed;
  const inflate = createInflateRaw({ chunkSize: 256 * 1024 });
  packed.on("error", (error) => inflate.destroy(error));
  inflate.on("close", () => packed.destroy());
  return packed.pipe(inflate);
}

interface ZipEntry {
  readonly method: number;
  readonly packedBytes: number;
  readonly localAt: number;
}

async function findEntry(file: FileHandle, member: string): Promise<ZipEntry> {
  const directory = await readDirectory(file);
  let at = 0;
  while (at + entryBytes <= directory.length && directory.readUInt32LE(at) === entrySignature) {
    const nameBytes = directory.readUInt16LE(at + 28);
    const rest = directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32);
    const name = directory.toString("utf8", at + entryBytes, at + entryBytes + nameBytes);
    if (name === member) {
      const method = directory.readUInt16LE(at + 10);
      const encrypted = (directory.readUInt16LE(at + 8) & 1) === 1;
      if (encrypted || (method !== stored && method !== deflated)) {
        throw new Error(`${member} is packed in a way that is not supported`);
      }
      return {
        method,
        packedBytes: directory.readUInt32LE(at + 20),
        localAt: directory.readUInt32LE(at + 42),
      };
    }
    at += entryBytes + nameBytes + rest;
  }
  throw new Error(`the zip file has no ${member}`);
}

async function readDirectory(file: FileHandle): Promise<Buffer> {
  const { size } = await file.stat();
  const tailBytes = Math.min(size, endBytes + commentBytesMax);
  const tail = await readAt(file, size - tailBytes, tailBytes);
  for (let at = tail.length - endBytes; at >= 0; at -= 1) {
    if (tail.readUInt32LE(at) !== endSignature) continue;
    const bytes = tail.readUInt32LE(at + 12);
    const start = tail.readUInt32LE(at + 16);
    if (start + bytes <= size) return readAt(file, start, bytes);
  }
  throw new Error("this is no zip file, or its end is missing");
}

async function readAt(file: FileHandle, position: number, bytes: number): Promise<Buffer> {
  const buffer = Buffer.alloc(bytes);
  const { bytesRead } = await file.read(buffer, 0, bytes, position);
  if (bytesRead < bytes) throw new Error("the zip file ends too early");
  return buffer;
}
