import { homedir } from "node:os";
import { isAbsolute, join, win32 } from "node:path";
import type { Environment } from "./environment.ts";

/** The machine as far as its cache folder depends on it. */
export interface CacheMachine {
  readonly environment: Environment;
  readonly platform: NodeJS.Platform;
  readonly home: string;
}

/**
 * Where this platform keeps what a program can fetch again: `%LOCALAPPDATA%` on Windows, `~/Library/Caches` on macOS,
 * else `$XDG_CACHE_HOME` or `~/.cache`; in each a folder of ours.
 */
export function cacheFolder({ environment, home, platform }: CacheMachine): string {
  if (platform === "win32") {
    const local = environment["LOCALAPPDATA"]?.trim() ?? "";
    return win32.join(
      local === "" ? win32.join(home, "AppData", "Local") : local,
      "tributary",
      "Cache",
    );
  }
  if (platform === "darwin") return join(home, "Library", "Caches", "tributary");
  // The XDG specification: a path that is not absolute is ignored.
  const given = environment["XDG_CACHE_HOME"]?.trim() ?? "";
  return join(isAbsolute(given) ? given : join(home, ".cache"), "tributary");
}

/** The home of this user. Of one whom the system does not know, as some programs run images, it is `/`, as others of them say. */
export function homeFolder(ask: () => string = homedir): string {
  try {
    return ask();
  } catch {
    return "/";
  }
}
