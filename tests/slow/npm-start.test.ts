import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";

const root = join(import.meta.dirname, "../..");

// Windows has no signals; there Ctrl-C reaches every program of the console.
it.skipIf(process.platform === "win32").each(["SIGTERM", "SIGINT"] as const)(
  "%s to npm start ends the service as Ctrl-C does, and npm waits for it",
  async (signal) => {
    const folder = await mkdtemp(join(tmpdir(), "tributary-npm-start-"));
    await using opened = new AsyncDisposableStack();
    opened.defer(() => rm(folder, { recursive: true, force: true }));
    const npm = spawn("npm", ["start"], {
      cwd: root,
      env: {
        ...process.env,
        TRIBUTARY_PORT: "0",
        TRIBUTARY_DATA_DIR: folder,
        TRIBUTARY_DEPLOYMENT_URL: "http://127.0.0.1:9",
        TRIBUTARY_LOG_FORMAT: "json",
      },
      stdio: ["ignore", "pipe", "inherit"],
      detached: true,
    });
    opened.defer(() => killGroup(npm.pid));
    const ended = once(npm, "exit");
    const events: unknown[] = [];
    let url = "";
    const lines = createInterface({ input: npm.stdout });
    const closed = once(lines, "close");
    lines.on("line", (line) => {
      if (!line.startsWith("{")) return;
      const said = JSON.parse(line) as { readonly event: string; readonly url?: string };
      events.push(said.event);
      if (said.event !== "listening") return;
      url = said.url ?? "";
      npm.kill(signal);
    });
    expect(await ended).toEqual([0, null]);
    await closed;
    expect(events.at(-1)).toBe("stopped");
    await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  },
);

/** What npm left behind, if it did. */
function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // All of them have ended, as they should.
  }
}
