import { statSync } from "node:fs";
import type { Telemetry } from "../telemetry/events.ts";

/** Tells the log of a folder that others may write or read. It is not tightened: it may be shared for a reason. */
export function tellLaxFolder(
  path: string,
  telemetry: Pick<Telemetry, "lifecycle">,
  platform: NodeJS.Platform = process.platform,
): void {
  // Elsewhere modes mean nothing.
  if (platform === "win32") return;
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isDirectory() !== true) return;
  // In a sticky folder, such as /tmp, files can be renamed and removed by their owners only.
  const sticky = (found.mode & 0o1000) !== 0;
  const fields = { path, mode: (found.mode & 0o7777).toString(8).padStart(4, "0") };
  if ((found.mode & 0o022) !== 0 && !sticky)
    telemetry.lifecycle("data folder writable by others", fields);
  else if ((found.mode & 0o077) !== 0)
    telemetry.lifecycle("data folder readable by others", fields);
}
