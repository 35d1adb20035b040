import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { cacheFolder } from "../../src/config/cache-folder.cjs";
import { startProgram } from "./start-program.ts";

// Of src/ledger/sqlite/store-thread.ts, which the thread of the ledger alone loads.
const threadText = 'type: "unusable", error: answerErrorToData';

// Of src/cli/run-command.ts.
const mainText = "async function runCommandLine(";

/** What the cache keeps of each module, its code without types among it. */
function keptTexts(cache: string): string[] {
  return readdirSync(join(cache, "compiled"), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"));
}

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tributary-main-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("the program", () => {
  it.each([
    ["which a variable names", true],
    ["of the platform", false],
  ])("keeps what it compiled in the user's cache folder, %s", async (_which, named) => {
    const environment = {
      // The program chooses its own only where no variable of Node does.
      NODE_COMPILE_CACHE: "",
      HOME: join(folder, "home"),
      LOCALAPPDATA: join(folder, "local"),
      ...(named ? { XDG_CACHE_HOME: join(folder, "cache") } : {}),
    };
    await using program = startProgram(["account", "--help"], folder, environment, "sources");
    expect(await program.exited).toBe(0);
    const { platform } = process;
    const cache = cacheFolder({ environment, platform, home: environment.HOME });
    // A static import of main.ts: what is loaded before the folder is named is compiled by every start.
    expect(keptTexts(cache).filter((text) => text.includes(mainText))).toHaveLength(1);
    if (platform === "linux") expect(existsSync(environment.HOME)).toBe(!named);
  });

  it("has its threads keep there what they compiled, too", async () => {
    const environment = { NODE_COMPILE_CACHE: "", XDG_CACHE_HOME: join(folder, "cache") };
    const words = ["account", "create", "first"];
    await using program = startProgram(words, folder, environment, "sources");
    expect(await program.exited).toBe(0);
    const cache = cacheFolder({ environment, platform: process.platform, home: folder });
    expect(keptTexts(cache).filter((text) => text.includes(threadText))).toHaveLength(1);
  });

  it.runIf(process.platform === "linux")(
    "ends with one line where the folder of the ledger cannot be made",
    async () => {
      const environment = { TRIBUTARY_DATA_DIR: "/proc/tributary/data" };
      await using program = startProgram(["account", "create", "first"], folder, environment);
      expect(await program.exited).toBe(1);
      expect(program.stderr()).toMatch(/^.*\/proc\/tributary\/data\/ledger\.sqlite.*ENOENT.*\n$/);
    },
  );
});
