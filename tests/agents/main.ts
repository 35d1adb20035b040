import { agents, codexWithKnownModels } from "./agents.ts";
import { capabilities, type Capability } from "./capabilities.ts";
import { runInClosedNetwork } from "./closed-network.ts";
import { formatTable } from "../../src/cli/text-table.ts";
import { installAgents, installClients } from "./install.ts";
import { runSdkTests } from "./sdk-table.ts";
import type { Outcome } from "./trial.ts";

// node tests/agents/main.ts [--all] [--only TEXT]: runs agents and SDKs against the service and prints
// which of them can do what. --only: just the agents and capabilities whose names hold the text.
const flags = process.argv.slice(2);
const all = flags.includes("--all");
const only = flags.includes("--only") ? (flags[flags.indexOf("--only") + 1] ?? "") : "";
const inside = "--inside";

if (flags.includes(inside)) await runAll(flags[flags.indexOf(inside) + 1] ?? "");
else {
  const [programs] = await Promise.all([installAgents(), installClients()]);
  process.exitCode = runInClosedNetwork([import.meta.filename, ...flags, inside, programs]);
}

async function runAll(programs: string): Promise<void> {
  const chosen = capabilities.filter(({ short }) => all || short);
  const rows = agents.map((agent) => ({ agent, chosen }));
  for (const agent of all ? codexWithKnownModels : []) {
    rows.push({ agent, chosen: chosen.slice(0, 1) });
  }
  let passed = 0;
  let failed = 0;
  const table: string[][] = [["client", "version", ...chosen.map(({ name }) => name)]];
  for (const { agent, chosen: tried } of rows) {
    const cells: string[] = [];
    for (const capability of tried) {
      if (!`${agent.name} ${capability.name}`.includes(only)) {
        cells.push("-");
        continue;
      }
      const outcome = await attempt(capability, () => capability.run(agent, programs));
      const well = outcome.problems.length === 0;
      if (well) passed += 1;
      else failed += 1;
      cells.push(`${well ? "ok" : "FAILED"} ${(outcome.tookMs / 1_000).toFixed(1)} s`);
      report(`${agent.name}: ${capability.name}`, outcome);
    }
    while (cells.length < chosen.length) cells.push("");
    table.push([agent.name, agent.version, ...cells]);
  }
  console.log(`\nAgents as programs\n${formatTable(table)}`);
  if (only === "") {
    const sdks = await runSdkTests(all);
    for (const failure of sdks.failures) console.log(`FAILED  ${failure}`);
    const title = "SDKs in a program, and what agents were recorded to send";
    console.log(`${title}\n${formatTable(sdks.table)}${sdks.notes.join("\n")}\n`);
    passed += sdks.passed;
    failed += sdks.failed;
  }
  console.log(`${String(passed)} passed, ${String(failed)} failed`);
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
}

async function attempt(capability: Capability, run: () => Promise<Outcome>): Promise<Outcome> {
  try {
    return await run();
  } catch (error) {
    const problem = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { problems: [`${capability.name}: ${problem}`], tookMs: 0, statuses: [], output: "" };
  }
}

function report(title: string, { output, problems, statuses, tookMs }: Outcome): void {
  const took = (tookMs / 1_000).toFixed(1);
  console.log(
    `${problems.length === 0 ? "ok" : "FAILED"}  ${title}, ${took} s: ${statuses.join(", ")}`,
  );
  for (const problem of problems) console.log(`    ${problem}`);
  if (problems.length > 0) console.log(output.slice(-4_000).replaceAll(/^/gmu, "    | "));
}
