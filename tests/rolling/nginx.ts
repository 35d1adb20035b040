import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readDocument } from "../documents/tables.ts";

/** nginx with lines of a document, in front of replicas on loopback. */
export interface Nginx extends AsyncDisposable {
  /** Where it listens. */
  readonly socketPath: string;
  /** What it wrote into its log of errors. */
  errors(): Promise<string>;
}

/** The header by which the tests' proxy says which replicas it asked. */
export const replicaHeader = "x-replica";

/** The program; null where it is not installed. */
export function findNginx(): string | null {
  const candidates = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/opt/homebrew/bin/nginx"];
  return candidates.find((candidate) => existsSync(candidate)) ?? null;
}

/** Starts it with the lines of docs/behind-a-proxy.md: but for addresses of replicas, and a socket instead of a port with TLS. */
export function startNginx(ports: readonly number[]): Promise<Nginx> {
  return runNginx((socketPath) => replicasOf(ports, socketPath));
}

/** Starts it with what stands between the braces of `http`. */
export async function runNginx(write: (socketPath: string) => string): Promise<Nginx> {
  const program = findNginx();
  if (program === null) throw new Error("there is no nginx here: install Debian's nginx-light");
  const folder = await mkdtemp(join(tmpdir(), "tributary-nginx-"));
  const socketPath = join(folder, "nginx.sock");
  const settings = join(folder, "nginx.conf");
  await writeFile(settings, configuration(folder, write(socketPath)));
  const child = spawn(program, ["-p", folder, "-c", settings, "-e", join(folder, "error.log")], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  const ended = once(child, "exit");
  for (let tries = 0; !existsSync(socketPath); tries += 1) {
    if (tries > 10_000 || child.exitCode !== null) throw new Error("nginx does not start");
    await sleep(10);
  }
  return {
    socketPath,
    errors: () => readFile(join(folder, "error.log"), "utf8"),
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function replicasOf(ports: readonly number[], socketPath: string): string {
  const [, written = ""] =
    /```nginx\n([^]*?)```/.exec(readDocument("docs/behind-a-proxy.md")) ?? [];
  const left = [...ports];
  const lines = written
    .replaceAll(/server 10\.0\.0\.\d:8080/g, () => `server 127.0.0.1:${String(left.shift())}`)
    .replace("listen 443 ssl http2;", `listen unix:${socketPath};`)
    .replaceAll(/^.*\bssl_certificate.*\n/gm, "");
  if (left.length > 0) throw new Error("the document has fewer replicas than this test");
  return lines;
}

function configuration(folder: string, lines: string): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${join(folder, name)};`,
  );
  return [
    "daemon off;",
    // Its workers would step down to a user that may not enter the folder.
    ...(process.getuid?.() === 0 ? ["user root;"] : []),
    "worker_processes 2;",
    `pid ${join(folder, "nginx.pid")};`,
    "events { worker_connections 1024; }",
    `http { access_log off; ${temporary.join(" ")} add_header ${replicaHeader} $upstream_addr always;`,
    lines,
    "}",
    "",
  ].join("\n");
}
