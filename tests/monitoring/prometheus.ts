import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";

/** What an operator gets: rules, their cases, the settings of Prometheus. */
export const prometheusFolder = join(import.meta.dirname, "../../deploy/prometheus");

/** Runs Debian's promtool; its words where it has something to say against what it was given. */
export function promtool(
  words: readonly string[],
  input = "",
): { readonly ok: boolean; readonly words: string } {
  const run = spawnSync("promtool", words, { cwd: prometheusFolder, input, encoding: "utf8" });
  if (run.error !== undefined) throw new Error("there is no promtool: install Debian's prometheus");
  return { ok: run.status === 0, words: run.stdout + run.stderr };
}

/** A series as a query gave it. */
export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A Prometheus that scrapes. */
export interface Prometheus extends AsyncDisposable {
  query(expression: string): Promise<readonly Series[]>;
  /** The alerts that it has loaded, and whether each could be evaluated. */
  alerts(): Promise<readonly { readonly name: string; readonly health: string }[]>;
}

/** Starts Debian's Prometheus with the settings of deploy/, but for addresses and intervals. */
export async function startPrometheus(targets: readonly string[]): Promise<Prometheus> {
  const folder = mkdtempSync(join(tmpdir(), "tributary-prometheus-"));
  cpSync(prometheusFolder, folder, { recursive: true });
  const settings = readFileSync(join(folder, "prometheus.yml"), "utf8")
    .replaceAll(/(scrape|evaluation)_interval: \d+s/g, "$1_interval: 500ms")
    .replace(/dns_sd_configs:[^]*$/, `static_configs: [{ targets: ${JSON.stringify(targets)} }]\n`);
  writeFileSync(join(folder, "prometheus.yml"), settings);
  const port = await freePort();
  const url = `http://127.0.0.1:${String(port)}`;
  const child = spawn(
    "prometheus",
    [
      "--config.file=prometheus.yml",
      `--web.listen-address=127.0.0.1:${String(port)}`,
      "--storage.tsdb.path=data",
    ],
    { cwd: folder, stdio: ["ignore", "ignore", "pipe"], timeout: 110_000 },
  );
  let words = "";
  child.stderr.on("data", (piece) => (words += String(piece)));
  const ended = once(child, "exit");
  const ask = async (path: string): Promise<unknown> => {
    const answer = await fetch(url + path);
    if (!answer.ok) throw new Error(`${path}: ${String(answer.status)} ${await answer.text()}`);
    return answer.json();
  };
  await expect
    .poll(async () => {
      if (child.exitCode !== null) throw new Error(`prometheus ended: ${words}`);
      return (await fetch(`${url}/-/ready`).catch(() => null))?.status;
    })
    .toBe(200);
  return {
    async query(expression) {
      const answer = await ask(`/api/v1/query?query=${encodeURIComponent(expression)}`);
      const { result } = (answer as { readonly data: { readonly result: readonly Sample[] } }).data;
      return result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
    },
    async alerts() {
      const { data } = (await ask("/api/v1/rules")) as {
        readonly data: { readonly groups: readonly { readonly rules: readonly Alert[] }[] };
      };
      return data.groups.flatMap(({ rules }) => rules);
    },
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

type Alert = Awaited<ReturnType<Prometheus["alerts"]>>[number];

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}
