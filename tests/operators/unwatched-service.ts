import type { ReplicaFacts } from "../../src/ledger/administration/replica-administration.ts";
import type { WatchedService } from "../../src/operators/watched-service.ts";

/** A replica that serves no request, with what a test wants of it. */
export function unwatchedService(of: Partial<WatchedService> = {}): WatchedService {
  return {
    id: "here",
    startedAtMs: 0,
    facts: () => Promise.resolve(replicaFacts),
    running: () => Promise.resolve([]),
    figures: () => Promise.resolve({ outputTokens: 0, failures: {}, firstOutputsMs: [] }),
    refusals: () => Promise.resolve([]),
    deployment: () => ({
      kind: "embedded",
      url: null,
      model: "tiny",
      contextTokens: 512,
      takesTools: true,
    }),
    settings: () => [],
    look: () => {},
    verify: () => Promise.reject(new Error("there is no ledger here")),
    ...of,
  };
}

/** What a replica says of itself. */
export const replicaFacts: ReplicaFacts = {
  version: "1.2.3",
  host: "one",
  processId: 17,
  operators: null,
  running: 0,
  draining: false,
  reasons: {},
  settings: { TRIBUTARY_MODEL: "aaaa", TRIBUTARY_KEEPALIVE_MS: "bbbb" },
};
