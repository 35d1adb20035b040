import { randomBytes } from "node:crypto";
import { type FileHandle, mkdir, open } from "node:fs/promises";
import { join } from "node:path";

/** A file of archived receipts: what was appended is on the disk when the promise is resolved. */
export interface ArchiveFile extends AsyncDisposable {
  readonly name: string;
  append(lines: readonly string[]): Promise<void>;
  /** Takes the last lines for good. */
  confirm(): void;
  /** Takes back what was appended since. */
  undo(): Promise<void>;
}

/** Names a new file in a folder; it is made, for its owner alone, when it gets its first line. */
export function openArchiveFile(folder: string, nowMs: number): ArchiveFile {
  const time = new Date(nowMs).toISOString().slice(0, 19).replaceAll(":", "");
  const name = `receipts-${time}Z-${randomBytes(3).toString("hex")}.jsonl`;
  let handle: FileHandle | null = null;
  let [length, confirmed] = [0, 0];
  async function openOnce(): Promise<FileHandle> {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const opened = await open(join(folder, name), "wx", 0o600);
    // The file's name has to be on the disk, too, before anything is removed for it.
    await using directory = await open(folder, "r");
    await directory.sync();
    return opened;
  }
  return {
    name,
    async append(lines) {
      handle ??= await openOnce();
      const bytes = Buffer.from(lines.map((line) => `${line}\n`).join(""));
      await handle.write(bytes, 0, bytes.byteLength, length);
      length += bytes.byteLength;
      await handle.datasync();
    },
    confirm() {
      confirmed = length;
    },
    async undo() {
      await handle?.truncate(confirmed);
      length = confirmed;
    },
    async [Symbol.asyncDispose]() {
      await handle?.close();
    },
  };
}
