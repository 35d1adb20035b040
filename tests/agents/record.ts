import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  compareRecordings,
  isStructural,
  printDifferences,
} from "../recordings/compare-recordings.ts";
import { readRecordingOf, type Recording, writeRecording } from "../recordings/recording.ts";
import { recordSdk } from "../recordings/record-sdk.ts";
import { sdks } from "../recordings/sdk-programs.ts";
import { type Agent, agents, codexWithKnownModels, opencodeWithOtherFormats } from "./agents.ts";
import { runInClosedNetwork } from "./closed-network.ts";
import { installAgents } from "./install.ts";
import { recordAgent } from "./record-agent.ts";

// node tests/agents/record.ts [CLIENT] [--version X.Y.Z] [--check]: runs clients, writes what they send to
// tests/recordings/, and prints what is different from the last time. CLIENT: those whose name begins so; all without it.
// --version: of the agent, instead of the one in agents.ts. --check: writes nothing, fails when the structure differs.
const root = join(import.meta.dirname, "../..");
const flags = process.argv.slice(2);
const inside = "--inside";
const version = valueOf("--version");
const programs = valueOf(inside);
const values = [version, programs];
const wanted = flags.find((flag) => !flag.startsWith("--") && !values.includes(flag)) ?? "";

const allAgents = [...agents, ...codexWithKnownModels, ...opencodeWithOtherFormats];
const chosenAgents = allAgents
  .filter(isWanted)
  .map((agent): Agent => (version === null ? agent : { ...agent, version }));
const chosenSdks = sdks.filter(isWanted);

if (chosenAgents.length + chosenSdks.length === 0) {
  const known = [...allAgents, ...sdks].map(({ name }) => name);
  stop(`No client's name begins with "${wanted}". There are: ${known.join("; ")}.`);
} else if (version !== null && new Set(chosenAgents.map((agent) => agent.packageName)).size !== 1) {
  stop("--version is of one agent: name it. Versions of SDKs are in package.json.");
} else if (programs === null) {
  const needed = version === null ? agents : chosenAgents;
  const installed = chosenAgents.length === 0 ? "none" : await install(needed);
  if (installed !== null) {
    process.exitCode = runInClosedNetwork([import.meta.filename, ...flags, inside, installed]);
  }
} else {
  await recordAll(programs);
}

async function install(needed: readonly Agent[]): Promise<string | null> {
  try {
    return await installAgents(needed);
  } catch (error) {
    const names = needed.map((agent) => `${agent.packageName} ${agent.version}`).join(", ");
    stop(`Not installed: ${names}. ${error instanceof Error ? error.message : ""}`);
    return null;
  }
}

async function recordAll(folder: string): Promise<void> {
  let passed = 0;
  let failed = 0;
  for (const { name, record } of [
    ...chosenAgents.map((agent) => ({
      name: agent.name,
      record: () => recordAgent(agent, folder),
    })),
    ...chosenSdks.map((sdk) => ({ name: sdk.name, record: () => recordSdk(sdk) })),
  ]) {
    const well = await attempt(name, record);
    if (well) passed += 1;
    else failed += 1;
  }
  console.log(`${String(passed)} passed, ${String(failed)} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

async function attempt(name: string, record: () => Promise<Recording>): Promise<boolean> {
  try {
    const recording = await record();
    const before = readRecordingOf(recording.client);
    const same = report(before, recording);
    if (flags.includes("--check")) return same;
    format(fileURLToPath(writeRecording(recording)));
    return true;
  } catch (error) {
    console.log(`${name}: ${error instanceof Error ? (error.stack ?? error.message) : "failed"}`);
    return false;
  }
}

/** Prints what is different; whether the structure is the same. */
function report(before: Recording | null, after: Recording): boolean {
  const title = `${after.client} ${after.version}, ${String(after.calls.length)} requests`;
  if (before === null) {
    console.log(`${title}: the first recording`);
    return false;
  }
  const differences = compareRecordings(before, after);
  const words = differences.length === 0 ? "as recorded" : "different from the recording";
  console.log(`${title}: ${words} with ${before.version}`);
  if (differences.length > 0) console.log(printDifferences(differences).replaceAll(/^/gmu, "  "));
  return !differences.some(isStructural);
}

function format(file: string): void {
  const formatter = join(root, "node_modules/.bin/oxfmt");
  const { status } = spawnSync(formatter, [file], { cwd: root, stdio: "inherit" });
  if (status !== 0) throw new Error(`${file} could not be formatted`);
}

function isWanted({ name }: { readonly name: string }): boolean {
  return plain(name).startsWith(plain(wanted));
}

function plain(text: string): string {
  return text.toLowerCase().replaceAll(/[^a-z0-9.]/gu, "");
}

function valueOf(flag: string): string | null {
  return flags.includes(flag) ? (flags[flags.indexOf(flag) + 1] ?? "") : null;
}

function stop(words: string): void {
  console.log(words);
  process.exitCode = 2;
}
