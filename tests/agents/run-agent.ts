import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type Agent, shellLine } from "./agents.ts";
import { pathWithThisNode } from "./install.ts";

/** A fresh home and a fresh folder to work in. */
export interface Workplace extends AsyncDisposable {
  readonly home: string;
  readonly work: string;
}

/** Makes them in a temporary folder, which goes with them. */
export async function openWorkplace(): Promise<Workplace> {
  const folder = await mkdtemp(join(tmpdir(), "tributary-agent-"));
  const [home, work] = [join(folder, "home"), join(folder, "work")];
  await mkdir(home);
  await mkdir(work);
  return {
    home,
    work,
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true, maxRetries: 5 }),
  };
}

/** How an agent is asked. */
export interface AgentRun {
  readonly agent: Agent;
  readonly programs: string;
  readonly access: { readonly url: string; readonly key: string };
  readonly prompt: string;
  readonly workplace: Workplace;
  readonly limitMs: number;
}

/** What came of it. */
export interface AgentResult {
  /** Whether it ran past its time and was killed. */
  readonly timedOut: boolean;
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly tookMs: number;
}

// Nothing listens on the discard port of a machine's loopback: what an agent sends elsewhere fails at once.
const closedPort = "http://127.0.0.1:9";

/** Runs an agent once, reaching nothing but loopback; ends it when its time is over. */
export async function runAgent(run: AgentRun): Promise<AgentResult> {
  const { home, work } = run.workplace;
  const startMs = performance.now();
  const child = spawn("sh", ["-c", shellLine(run.agent, run.access, run.prompt)], {
    cwd: work,
    env: { ...offline(home, run.programs), ...run.agent.environment },
    stdio: ["ignore", "pipe", "pipe"],
    // A process group of its own, so that its end ends what it started.
    detached: true,
  });
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    endGroup(child.pid);
  }, run.limitMs);
  const outputs = Promise.all([text(child.stdout), text(child.stderr)]);
  await once(child, "exit");
  clearTimeout(timer);
  const tookMs = Math.round(performance.now() - startMs);
  endGroup(child.pid);
  const [stdout, stderr] = await outputs;
  return { timedOut, exitCode: child.exitCode, stdout, stderr, tookMs };
}

function offline(home: string, programs: string): Readonly<Record<string, string>> {
  return {
    PATH: pathWithThisNode(programs),
    HOME: home,
    TMPDIR: home,
    SHELL: "/bin/sh",
    LANG: "C.UTF-8",
    TERM: "dumb",
    CI: "true",
    DO_NOT_TRACK: "1",
    HTTP_PROXY: closedPort,
    HTTPS_PROXY: closedPort,
    NO_PROXY: "127.0.0.1,localhost",
  };
}

function endGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // The group is gone: the ordinary case after an agent has ended by itself.
  }
}
