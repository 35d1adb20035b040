/** The machine as far as its cache folder depends on it. */
export interface CacheMachine {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly platform: NodeJS.Platform;
  readonly home: string;
}

/**
 * Where this platform keeps what a program can fetch again: `%LOCALAPPDATA%` on Windows, `~/Library/Caches` on macOS,
 * else `$XDG_CACHE_HOME` or `~/.cache`; in each a folder of ours.
 */
export function cacheFolder(machine: CacheMachine): string;

/** The home of this user. Of one whom the system does not know, as some programs run images, it is `/`, as others of them say. */
export function homeFolder(ask?: () => string): string;
