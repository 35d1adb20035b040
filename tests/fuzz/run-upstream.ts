import { parseArgs } from "node:util";
import { fuzzUpstream } from "./upstream.ts";

// The reading of the deployment alone, without sockets and service: npm run fuzz has those.

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "50000" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
  },
});
const { endings, slowestMs } = await fuzzUpstream(Number(values.seed), Number(values.runs));
const told = [...endings].map(([ending, count]) => `${ending} ${String(count)}`).join(", ");
process.stdout.write(`seed ${values.seed}: ${told}; slowest ${slowestMs.toFixed(1)} ms\n`);
process.stdout.write(`${values.runs} passed, 0 failed\n`);
