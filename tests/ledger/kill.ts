import { runKillRounds } from "./kill-rounds.ts";

// node tests/ledger/kill.ts [ROUNDS] [SEED]: kills at seeded points, and says what was found afterwards.
const [rounds = "50", seed = "1"] = process.argv.slice(2);
const report = await runKillRounds(Number(rounds), Number(seed));
console.log(JSON.stringify(report, null, 2));
process.exitCode = report.problems.length === 0 ? 0 : 1;
