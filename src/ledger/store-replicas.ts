import type { ChangedBy } from "./administration/changed-by.ts";
import type { ReplicasAdministration } from "./ledger.ts";
import type { RunOperation } from "./store-operations.ts";

/** What of the operator's half is about what runs, over a store. */
export function administerReplicas(run: RunOperation, by: ChangedBy): ReplicasAdministration {
  return {
    cancelGeneration: (requestId) => run("cancelGeneration", { requestId, by }),
    cancelledGenerations: () => run("cancelledGenerations", null),
    openRequests: (idsMax) => run("openRequests", { idsMax }),
    reportReplica: (id, facts) => run("reportReplica", { id, facts, by }),
    forgetReplica: async (id) => void (await run("forgetReplica", { id, by })),
    listReplicas: () => run("listReplicas", null),
    drainReplica: (id) => run("drainReplica", { id, by }),
  };
}
