import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

/** The folder of the compose file: what the file names stands relative to it. */
export const composeFolder = join(import.meta.dirname, "../../deploy/compose");

/** What these tests read of a service of the compose file. */
export interface ComposeService {
  readonly environment?: Readonly<Record<string, string>>;
  readonly secrets?: readonly string[];
  readonly volumes?: readonly string[];
  readonly tmpfs?: readonly string[];
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
}

/** The services of the compose file, with these variables in the place of those that it names. */
export function readCompose(
  variables: Readonly<Record<string, string>>,
): Readonly<Record<string, ComposeService>> {
  const text = readFileSync(join(composeFolder, "compose.yaml"), "utf8").replaceAll(
    /\$\{([A-Z_]+):-([^}]*)\}/g,
    (_all, name: string, otherwise: string) => variables[name] ?? otherwise,
  );
  const program = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)";
  const parsed = JSON.parse(run("python3", ["-c", program], text)) as {
    readonly services: Readonly<Record<string, ComposeService>>;
  };
  return parsed.services;
}

/** What an image says of how it is run. */
export interface ImageConfig {
  readonly User: string;
  readonly Env: readonly string[];
  readonly Entrypoint: readonly string[];
  readonly Cmd: readonly string[];
  readonly WorkingDir: string;
  readonly StopSignal: string;
  readonly Healthcheck: { readonly Test: readonly string[] };
}

/** A container that runs. */
export interface Container extends AsyncDisposable {
  /** Runs a program in it, as its user; throws where that fails. */
  exec(words: readonly string[]): string;
  signal(name: string): void;
  log(): string;
  readonly exited: Promise<number | null>;
}

/** What a container is started with. */
export interface ContainerOrder {
  readonly name: string;
  /** The image's files. */
  readonly place: string;
  readonly image: ImageConfig;
  readonly service: ComposeService;
  /** Where this run keeps what it makes. */
  readonly folder: string;
  /** The file that each secret of the service is. */
  readonly secretFile: (name: string) => string;
}

/** Runs an image as a service of the compose file, by crun: the program below podman and some of Kubernetes, without a daemon. */
export function startContainer(order: ContainerOrder): Container {
  const { folder, name } = order;
  const bundle = join(folder, `bundle-${name}`);
  mkdirSync(bundle, { recursive: true });
  writeFileSync(join(bundle, "config.json"), JSON.stringify(bundleOf(order)));
  // Control groups belong to whoever runs this machine.
  const crun = ["--cgroup-manager=disabled", "--root", join(folder, "crun")];
  const child = spawn("crun", [...crun, "run", "--bundle", bundle, name], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let written = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (piece) => (written += String(piece)));
  const exited = new Promise<number | null>((done) => child.once("close", done));
  return {
    exec: (words) => run("crun", [...crun, "exec", "--user", order.image.User, name, ...words]),
    signal: (signal) => void run("crun", [...crun, "kill", name, signal]),
    log: () => written,
    exited,
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null) spawnSync("crun", [...crun, "delete", "--force", name]);
      await exited;
    },
  };
}

function bundleOf({ folder, image, place, secretFile, service }: ContainerOrder): object {
  const [uid = 0, gid = 0] = image.User.split(":").map(Number);
  const own = Object.entries(service.environment ?? {}).map(([name, value]) => `${name}=${value}`);
  const bind = (source: string, destination: string, kind: "ro" | "rw"): object => ({
    destination,
    source,
    type: "bind",
    options: ["rbind", kind],
  });
  const volumes = (service.volumes ?? []).map((line) => {
    const [source = "", destination = "", kind = "rw"] = line.split(":");
    if (source.startsWith(".")) return bind(resolve(composeFolder, source), destination, "ro");
    const volume = join(folder, `volume-${source}`);
    mkdirSync(volume, { recursive: true });
    run("chown", [image.User, volume]);
    return bind(volume, destination, kind === "ro" ? "ro" : "rw");
  });
  if (service.cap_drop?.includes("ALL") !== true) throw new Error("the service keeps capabilities");
  return {
    ociVersion: "1.0.2",
    process: {
      user: { uid, gid },
      args: [...image.Entrypoint, ...image.Cmd],
      env: [...image.Env, ...own],
      cwd: image.WorkingDir,
      capabilities: { bounding: [], effective: [], permitted: [], inheritable: [], ambient: [] },
      noNewPrivileges: service.security_opt?.includes("no-new-privileges:true") === true,
    },
    root: { path: place, readonly: service.read_only === true },
    mounts: [
      { destination: "/proc", type: "proc", source: "proc" },
      { destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "mode=755"] },
      ...(service.tmpfs ?? []).map((destination) => ({
        destination,
        type: "tmpfs",
        source: "tmpfs",
        options: ["nosuid", "nodev", "mode=1777"],
      })),
      ...volumes,
      ...(service.secrets ?? []).map((name) =>
        bind(secretFile(name), `/run/secrets/${name}`, "ro"),
      ),
      // What every program that runs images gives them.
      ...["/etc/resolv.conf", "/etc/hosts"].map((path) => bind(path, path, "ro")),
    ],
    // The network is that of the run, which has a loopback and nothing else.
    linux: { namespaces: ["pid", "ipc", "uts", "mount"].map((type) => ({ type })) },
  };
}

/** Runs a program to its end. Throws, with what it wrote, where it fails. */
export function run(program: string, words: readonly string[], input = ""): string {
  const ran = spawnSync(program, words, { input, encoding: "utf8", timeout: 100_000 });
  if (ran.status !== 0)
    throw new Error(
      `${program} ${words.join(" ")}: ${String(ran.error ?? ran.status)}\n${ran.stdout}${ran.stderr}`,
    );
  return ran.stdout;
}

/** A program of this machine in the place of an image of others. */
export interface Daemon extends AsyncDisposable {
  log(): string;
}

/** Starts one; `user` is an id. */
export function startDaemon(
  program: string,
  words: readonly string[],
  user?: { readonly uid: number; readonly gid: number },
): Daemon {
  const child = spawn(program, words, { ...user, cwd: "/", stdio: ["ignore", "pipe", "pipe"] });
  let written = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (piece) => (written += String(piece)));
  child.once("error", (error) => (written += error.message));
  const ended = once(child, "close").catch(() => null);
  return {
    log: () => written,
    async [Symbol.asyncDispose]() {
      // At once, whichever of them it is.
      child.kill("SIGQUIT");
      await ended;
    },
  };
}

/** Waits for a condition; only what never comes is given up. */
export async function until<Value>(
  what: string,
  look: () => Value | Promise<Value>,
): Promise<Exclude<Value, false | null>> {
  const endMs = performance.now() + 120_000;
  for (let last: unknown = null; ;) {
    try {
      const found = await look();
      if (found !== false && found !== null) return found as Exclude<Value, false | null>;
    } catch (error) {
      last = error;
    }
    if (performance.now() > endMs) throw new Error(`still not: ${what}`, { cause: last });
    // Real time: programs of others say nowhere when they are ready.
    await new Promise((done) => setTimeout(done, 100));
  }
}
