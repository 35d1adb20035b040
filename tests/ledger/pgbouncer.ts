import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";
import { addressOf, type PostgresDatabases } from "./postgres-server.ts";

/** The pooler's program; null: it is not installed. */
export const pgbouncer: string | null =
  // oxlint-disable-next-line node/no-process-env -- tests find a program as a shell would
  [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/usr/local/sbin"]
    .map((folder) => join(folder, "pgbouncer"))
    .find((path) => existsSync(path)) ?? null;

/** A pooler in front of a server, on a socket in a folder of its own. */
export interface Pgbouncer extends AsyncDisposable {
  /** The address through it of a database of the server, whose own address is given. */
  through(url: string): string;
}

/** Starts it with the settings that it comes with, in the mode given. */
export async function startPgbouncer(
  server: PostgresDatabases,
  mode: "session" | "transaction",
): Promise<Pgbouncer> {
  const folder = mkdtempSync(join(tmpdir(), "pgbouncer-"));
  const user = process.getuid?.() === 0 ? await numbersOf("postgres") : null;
  chmodSync(folder, 0o700);
  writeFileSync(join(folder, "users"), '"ledger" ""\n');
  writeFileSync(
    join(folder, "settings.ini"),
    [
      "[databases]",
      `* = host=${dirname(server.socket)}`,
      "[pgbouncer]",
      "listen_addr =",
      `unix_socket_dir = ${folder}`,
      "listen_port = 6432",
      "auth_type = trust",
      `auth_file = ${join(folder, "users")}`,
      `pool_mode = ${mode}`,
    ].join("\n"),
  );
  if (user !== null)
    for (const path of [folder, join(folder, "users"), join(folder, "settings.ini")])
      chownSync(path, user.uid, user.gid);
  const child = spawn(pgbouncer ?? "pgbouncer", [join(folder, "settings.ini")], {
    // The clone may lie in a folder that only root may enter.
    cwd: folder,
    stdio: "ignore",
    ...user,
  });
  const through = (url: string): string =>
    url.replace(/\?host=.*$/, `?host=${encodeURIComponent(folder)}&port=6432`);
  await untilItAnswers(through(addressOf(dirname(server.socket), "postgres")), child);
  return {
    through,
    async [Symbol.asyncDispose]() {
      const ended = once(child, "exit");
      child.kill("SIGKILL");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

async function numbersOf(name: string): Promise<{ readonly uid: number; readonly gid: number }> {
  const run = promisify(execFile);
  const [uid, gid] = await Promise.all([run("id", ["-u", name]), run("id", ["-g", name])]);
  return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
}

async function untilItAnswers(url: string, child: ChildProcess): Promise<void> {
  for (const until = performance.now() + 100_000; ;) {
    const client = new Client({ connectionString: url });
    client.on("error", () => {});
    try {
      await client.connect();
      await client.query("select 1");
      return;
    } catch (error) {
      if (child.exitCode !== null || performance.now() > until) throw error;
      // Real time: a process of its own says nowhere when it listens.
      await new Promise((resolve) => setTimeout(resolve, 25));
    } finally {
      await client.end();
    }
  }
}
