#!/usr/bin/env node
/** The program `tributary-engine`. It runs a model in a process of its own, whose end takes nothing else with it. */
import { readdirSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { help, readCommandLine, UsageError, type Settings } from "./command-line.ts";
import { openEvents } from "./events.ts";
import { ModelSettingError } from "./model-setting.ts";
import { list, pull } from "./pull.ts";
import { serve, type ServeParts } from "./serve.ts";

// Node would open its inspector, which runs any code for any user of this machine.
process.on("SIGUSR1", () => undefined);

const tell = openEvents(process.stdout);

/** null: it serves until it is ended. */
async function run(settings: Settings, parts: ServeParts): Promise<number | null> {
  switch (settings.command) {
    case "help":
      process.stdout.write(help);
      return 0;
    case "list":
      return list(settings, parts);
    case "pull":
      return pull(settings, parts);
    case "serve":
      return serve(settings, parts);
    default:
      return settings.command satisfies never;
  }
}

/** Other programs go first: an evaluation takes whole cores. */
function bePolite(): void {
  try {
    // Linux keeps a priority for each thread, and some are there before this line runs.
    const threads = process.platform === "linux" ? readdirSync("/proc/self/task").map(Number) : [0];
    for (const thread of threads) setPriority(thread, constants.priority.PRIORITY_BELOW_NORMAL);
  } catch {
    // A system that forbids it still serves, only less politely.
  }
}

/** An evaluation may still run in a thread, and waiting for it would keep the process: it leaves the hard way. */
function leaveWithStdin(): void {
  process.stdin.resume();
  process.stdin.once("close", () => process.kill(process.pid, "SIGKILL"));
  // Ctrl-C in a terminal reaches the whole group: the program that started this one decides when it ends.
  process.on("SIGINT", () => undefined);
}

bePolite();
// The reader of a pipe may be gone; its end is noticed by other means.
process.stdout.on("error", () => undefined);
try {
  const settings = readCommandLine(process.argv.slice(2), process.env);
  const stop = new AbortController();
  if (settings.untilStdinEnds) leaveWithStdin();
  else for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(0));
  const code = await run(settings, { environment: process.env, tell, signal: stop.signal });
  if (code !== null) process.exit(code);
} catch (error) {
  const reason = error instanceof Error ? error.message : String(error);
  const isSetting = error instanceof ModelSettingError || error instanceof UsageError;
  tell(isSetting ? "settings refused" : "not started", { reason });
  process.exit(isSetting ? 2 : 1);
}
