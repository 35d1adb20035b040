import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";

/** Databases of a real server, which go with the value. */
export interface PostgresDatabases extends AsyncDisposable {
  /** The address of a new database: empty, or a copy of another. */
  createDatabase(name: string, template?: string): Promise<string>;
  url(database: string): string;
  /** Where the server listens. */
  readonly socket: string;
}

/** A server that no other test uses, on a socket in a folder of its own. */
export interface PostgresServer extends PostgresDatabases {
  /** Ends the process as a crash would, or in order. */
  stop(how: "crash" | "in-order"): Promise<void>;
  start(): Promise<void>;
}

const run = promisify(execFile);
const user = "ledger";

/** The folder with the server's programs, or with another one of PostgreSQL's; null: there is none. */
export function findPostgres(program = "initdb"): string | null {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian)
    ? readdirSync(debian).toSorted((a, b) => Number(b) - Number(a))
    : [];
  const folders = [
    // oxlint-disable-next-line node/no-process-env -- tests find a program as a shell would
    ...(process.env["PATH"] ?? "").split(delimiter),
    ...versions.map((version) => join(debian, version, "bin")),
  ];
  return folders.find((folder) => existsSync(join(folder, program))) ?? null;
}

/** Whether tests want a server: in CI a missing one fails them instead of leaving them out. */
export const postgresTests: boolean =
  // oxlint-disable-next-line node/no-process-env -- the one thing that tells CI apart
  process.env["CI"] === "true" || findPostgres() !== null;

/** Makes and starts a server. It syncs to disk only when asked to, for measuring: no test cuts the power. */
export async function startPostgres(
  settings: {
    readonly fsync?: boolean;
    /** Whether the server collects statistics and vacuums by itself, at moments of its own; so where it is left out. */
    readonly autovacuum?: boolean;
    /** Where its folder is made; absent: the system's for temporary files. */
    readonly parent?: string;
    /** Of loopback and of the socket's name; absent: it listens at a socket alone. */
    readonly port?: number;
    /** A folder of data that is there already, and is made the server's; absent: a new one. */
    readonly from?: string;
    /** Further settings of the server; a function of its folder of data, which belongs to it. */
    readonly more?: (data: string, own: (path: string) => void) => Readonly<Record<string, string>>;
  } = {},
): Promise<PostgresServer> {
  const programs = findPostgres();
  if (programs === null)
    throw new Error("no PostgreSQL here: install Debian's postgresql, or put initdb into PATH");
  const folder = mkdtempSync(join(settings.parent ?? tmpdir(), "pg-"));
  const identity = await unprivileged();
  if (identity !== null) chownSync(folder, identity.uid, identity.gid);
  const options = {
    cwd: folder,
    env: { LC_ALL: "C", PATH: [programs, "/usr/bin", "/bin"].join(delimiter) },
    ...identity,
  };
  const data = settings.from ?? join(folder, "data");
  if (settings.from === undefined)
    await run(
      join(programs, "initdb"),
      ["-D", data, "-U", user, "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C"],
      options,
    );
  else if (identity !== null) await run("chown", ["-R", `${identity.uid}:${identity.gid}`, data]);
  const own = (path: string): void => {
    if (identity !== null) chownSync(path, identity.uid, identity.gid);
  };
  const more = Object.entries(settings.more?.(data, own) ?? {}).flatMap(([name, value]) => [
    "-c",
    `${name}=${value}`,
  ]);
  let ended: Promise<unknown> = Promise.resolve();
  let signal: (name: NodeJS.Signals) => void = () => {};

  const port = settings.port ?? 5_432;
  const url = (database: string): string => `${addressOf(folder, database)}&port=${String(port)}`;
  async function start(): Promise<void> {
    const server = spawn(
      join(programs ?? "", "postgres"),
      // prettier-ignore
      ["-D", data, "-k", folder, "-c", `listen_addresses=${settings.port === undefined ? "" : "127.0.0.1"}`, "-c", `port=${String(port)}`, "-c", `fsync=${settings.fsync === true ? "on" : "off"}`, "-c", `autovacuum=${settings.autovacuum === false ? "off" : "on"}`, "-c", "shared_buffers=64MB", "-c", "max_connections=200", ...more],
      { ...options, stdio: "ignore" },
    );
    ended = once(server, "exit");
    signal = (name) => void server.kill(name);
    // Where a test process ends without disposing what it has opened.
    const end = (): void => void server.kill("SIGQUIT");
    process.once("exit", end);
    server.once("exit", () => process.off("exit", end));
    const until = performance.now() + 100_000;
    for (;;) {
      try {
        await execute(url("postgres"), "select 1");
        return;
      } catch (error) {
        if (performance.now() > until || server.exitCode !== null) throw error;
        // Real time: a process of its own says nowhere when it listens.
        await new Promise((resolve) => setTimeout(resolve, 25));
      }
    }
  }
  async function stop(how: "crash" | "in-order"): Promise<void> {
    // Immediate and fast shutdown: the first recovers at the next start, as after a crash.
    signal(how === "crash" ? "SIGQUIT" : "SIGINT");
    await ended;
  }
  await start();
  return {
    url,
    socket: join(folder, `.s.PGSQL.${String(port)}`),
    start,
    stop,
    async createDatabase(name, template = "template1") {
      await execute(url("postgres"), `create database ${name} template ${template}`);
      return url(name);
    },
    async [Symbol.asyncDispose]() {
      await stop("crash");
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The address of a database of the server whose socket is in the folder. */
export function addressOf(folder: string, database: string): string {
  return `postgres://${user}@/${database}?host=${encodeURIComponent(folder)}`;
}

/** The server refuses to run as root: then it gets the user that its package has made, or the one named nobody. */
async function unprivileged(): Promise<{ readonly uid: number; readonly gid: number } | null> {
  if (process.getuid?.() !== 0) return null;
  for (const name of ["postgres", "nobody"]) {
    try {
      const [uid, gid] = await Promise.all([run("id", ["-u", name]), run("id", ["-g", name])]);
      return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
    } catch {
      // The next one.
    }
  }
  throw new Error(
    "PostgreSQL does not run as root, and there is neither a user postgres nor nobody",
  );
}

/** One statement over a connection of its own; the rows as text. */
export async function execute(
  url: string,
  sql: string,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const client = new Client({ connectionString: url });
  client.on("error", () => {});
  await client.connect();
  try {
    const result = await client.query<Record<string, unknown>>(sql);
    return result.rows;
  } finally {
    await client.end();
  }
}
