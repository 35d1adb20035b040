import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { tellLaxFolder } from "../../src/cli/lax-folder.ts";

it("a data folder that others may write or read is told, and left as it is", () => {
  const folder = mkdtempSync(join(tmpdir(), "tributary-folder-"));
  try {
    const told = (mode: number, path = folder): readonly unknown[] => {
      const events: unknown[] = [];
      chmodSync(folder, mode);
      tellLaxFolder(path, {
        lifecycle: (event, { mode: shown }) => void events.push([event, shown]),
      });
      return events;
    };
    expect(told(0o700)).toEqual([]);
    expect(told(0o755)).toEqual([["data folder readable by others", "0755"]]);
    expect(told(0o775)).toEqual([["data folder writable by others", "0775"]]);
    expect(told(0o702)).toEqual([["data folder writable by others", "0702"]]);
    expect(told(0o1777)).toEqual([["data folder readable by others", "1777"]]);
    expect(told(0o777, join(folder, "nothing"))).toEqual([]);
    writeFileSync(join(folder, "file"), "", { mode: 0o666 });
    expect(told(0o777, join(folder, "file"))).toEqual([]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
