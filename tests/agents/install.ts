import { spawn } from "node:child_process";
import { once } from "node:events";
import { hash } from "node:crypto";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { nodePackages, pythonPackages } from "../clients/installed/packages.ts";
import { type Agent, agents } from "./agents.ts";

const installMs = 240_000;

type Versions = Readonly<Record<string, string>>;

/** PATH with this Node first: under an older one npm silently takes older packages. */
export function pathWithThisNode(...folders: readonly string[]): string {
  return [dirname(process.execPath), ...folders, process.env["PATH"] ?? ""].join(delimiter);
}

/** Where the packages of `nodePackages` are once they are installed. */
export const nodeFolder = folderOf("npm", nodePackages);

/** The Python that has the packages of `pythonPackages` once they are installed. */
export const pythonProgram = join(folderOf("python", pythonPackages), "bin", "python");

/** Installs agents once for each set of versions; resolves with the folder of their programs. */
export async function installAgents(wanted: readonly Agent[] = agents): Promise<string> {
  const versions = wanted.map(({ packageName, version }) => [packageName, version] as const);
  const folder = await installFromNpm(Object.fromEntries(versions));
  return join(folder, "node_modules", ".bin");
}

/** Installs the clients that are no dependencies of the project, in the same way. */
export async function installClients(): Promise<void> {
  await Promise.all([installFromNpm(nodePackages), installForPython(pythonPackages)]);
}

/** Where packages are once they are installed, which are no dependencies of the project. */
export function folderOf(kind: string, versions: Versions): string {
  const name = hash("sha256", `${kind} ${JSON.stringify(versions)}`).slice(0, 12);
  return join(tmpdir(), "tributary-clients", name);
}

/** Installs packages from npm once for each set of versions. */
export function installFromNpm(dependencies: Versions): Promise<string> {
  return installInto(folderOf("npm", dependencies), async (folder) => {
    // Two of the agents put their program in place in a script of their package.
    const allowScripts = Object.fromEntries(Object.keys(dependencies).map((name) => [name, true]));
    const manifest = { name: "clients", private: true, dependencies, allowScripts };
    writeFileSync(join(folder, "package.json"), JSON.stringify(manifest));
    await runIn(folder, ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"]);
  });
}

/** The same for Python, in a virtual environment. */
export function installForPython(versions: Versions): Promise<string> {
  return installInto(folderOf("python", versions), async (folder) => {
    await runIn(folder, ["python3", "-m", "venv", "."]);
    const wanted = Object.entries(versions).map(([name, version]) => `${name}==${version}`);
    const pip = ["bin/python", "-m", "pip", "install", "--quiet", "--no-input"];
    await runIn(folder, [...pip, "--disable-pip-version-check", ...wanted]);
  });
}

/** Fills a folder beside it and puts that in its place when all went well; one that is there is whole. Gives its path. */
export async function installInto(
  folder: string,
  fill: (folder: string) => Promise<void>,
): Promise<string> {
  if (existsSync(folder)) return folder;
  const started = `${folder}-${String(process.pid)}`;
  mkdirSync(started, { recursive: true });
  try {
    await fill(started);
    if (!existsSync(folder)) renameSync(started, folder);
  } finally {
    rmSync(started, { recursive: true, force: true });
  }
  return folder;
}

async function runIn(folder: string, [program = "", ...rest]: readonly string[]): Promise<void> {
  const child = spawn(program, rest, {
    cwd: folder,
    env: { ...process.env, PATH: pathWithThisNode() },
    stdio: ["ignore", "inherit", "inherit"],
    timeout: installMs,
  });
  const [code] = (await once(child, "exit")) as [number | null];
  if (code !== 0) throw new Error(`${[program, ...rest].join(" ")} ended with ${String(code)}`);
}
