import { crc32, deflateRawSync } from "node:zlib";

/** One member of a zip file. */
export interface WheelMember {
  readonly name: string;
  readonly bytes: Buffer;
  /** Stored as it is instead of deflated. */
  readonly stored?: boolean;
}

/** A zip file as wheels are: local headers with their data, then the directory. */
export function makeWheel(members: readonly WheelMember[]): Buffer {
  const files: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const { bytes, name, stored = false } of members) {
    const packed = stored ? bytes : deflateRawSync(bytes);
    // Both headers share version, flags, method, time, sums and sizes.
    const shared = Buffer.alloc(22);
    shared.writeUInt16LE(20, 0);
    shared.writeUInt16LE(stored ? 0 : 8, 4);
    shared.writeUInt32LE(crc32(bytes), 10);
    shared.writeUInt32LE(packed.length, 14);
    shared.writeUInt32LE(bytes.length, 18);
    const nameBytes = Buffer.from(name);
    const lengths = Buffer.alloc(4);
    lengths.writeUInt16LE(nameBytes.length, 0);
    const local = Buffer.concat([
      Buffer.from("PK\u0003\u0004"),
      shared,
      lengths,
      nameBytes,
      packed,
    ]);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(offset, 10);
    const entry = [Buffer.from("PK\u0001\u0002\u0014\u0000"), shared, lengths, rest, nameBytes];
    directory.push(Buffer.concat(entry));
    files.push(local);
    offset += local.length;
  }
  const entries = Buffer.concat(directory);
  const end = Buffer.alloc(22);
  end.write("PK\u0005\u0006", "latin1");
  end.writeUInt16LE(members.length, 8);
  end.writeUInt16LE(members.length, 10);
  end.writeUInt32LE(entries.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...files, entries, end]);
}
