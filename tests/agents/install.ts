import { spawnSync } from "node:child_process";
import { hash } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { agents } from "./agents.ts";

const installMs = 240_000;

/** PATH with this Node first: under an older one npm silently takes older agents. */
export function pathWithThisNode(...folders: readonly string[]): string {
  return [dirname(process.execPath), ...folders, process.env["PATH"] ?? ""].join(delimiter);
}

/** Installs the agents once for each set of versions; returns the folder of their programs. */
export function installAgents(): string {
  const dependencies = Object.fromEntries(
    agents.map(({ packageName, version }) => [packageName, version]),
  );
  const wanted = JSON.stringify(dependencies);
  const folder = join(tmpdir(), "tributary-agents", hash("sha256", wanted).slice(0, 12));
  if (!existsSync(folder)) {
    const started = `${folder}-${String(process.pid)}`;
    mkdirSync(started, { recursive: true });
    // Two of them put their program in place in a script of their package.
    const allowScripts = Object.fromEntries(agents.map(({ packageName }) => [packageName, true]));
    const manifest = { name: "agents", private: true, dependencies, allowScripts };
    writeFileSync(join(started, "package.json"), JSON.stringify(manifest));
    const installed = spawnSync("npm", ["install", "--no-audit", "--no-fund", "--loglevel=error"], {
      cwd: started,
      env: { ...process.env, PATH: pathWithThisNode() },
      stdio: ["ignore", "inherit", "inherit"],
      timeout: installMs,
    });
    if (installed.status !== 0) {
      rmSync(started, { recursive: true, force: true });
      throw new Error(`npm could not install ${wanted}`);
    }
    if (existsSync(folder)) rmSync(started, { recursive: true, force: true });
    else renameSync(started, folder);
  }
  return join(folder, "node_modules", ".bin");
}
