import { yieldToStreams } from "../yield-to-streams.ts";

// What a thread for bodies loads first: `body-worker.ts` and all that it imports take longer than most bodies do.

yieldToStreams();
await import("./body-worker.ts");
