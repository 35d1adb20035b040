/** A service in miniature, for tests that kill it: serves the model of argv, begins an endless answer, tells its child. */
import { ask, openEmbedded, untilReady } from "./ask.ts";

const deployment = await openEmbedded({
  dataDir: ".",
  model: process.argv[2] ?? "",
  slots: 1,
  threads: 1,
});
await untilReady(deployment);
const recording = ask(deployment, { outputTokensMax: 65_536 });
await recording.begun;
console.log(`child ${String(deployment.processId)}`);
await recording.ended;
