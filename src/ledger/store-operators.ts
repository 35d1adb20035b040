import type { ChangedBy } from "./administration/changed-by.ts";
import type { NewLoginCode } from "./administration/session-administration.ts";
import type { OperatorsAdministration } from "./ledger.ts";
import { newLedgerId } from "./new-api-key.ts";
import { newOperatorCredential, parseOperatorCredential } from "./operator-credential.ts";
import type { RunOperation } from "./store-operations.ts";

/** What of the operator's half is about operators, over a store. */
export function administerOperators(
  run: RunOperation,
  by: ChangedBy,
): OperatorsAdministration<string | null> {
  return {
    async createOperator({ expiresAtMs, name, role }) {
      const id = newLedgerId("oper_");
      const { secret, stored } = newOperatorCredential("token");
      const record = await run("createOperator", {
        id,
        name,
        role,
        token: { ...stored, expiresAtMs },
        by,
      });
      return { record, secret: record.id === id ? secret : null };
    },
    listOperators: () => run("listOperators", null),
    revokeOperator: (id) => run("revokeOperator", { id, by }),
    findOperator: async (presented) => {
      const token = parseOperatorCredential("token", presented);
      return token === null ? null : run("findOperator", token);
    },
    async createLoginCode(operatorId) {
      const { order, secret } = newLoginCode();
      const operator = await run("createLoginCode", { ...order, operatorId, by });
      return { operator, secret };
    },
    async createFirstOperator() {
      const { order, secret } = newLoginCode();
      const operator = await run("createFirstOperator", { ...order, by });
      return operator === null ? null : { operator, secret };
    },
    async openSession({ presented, type }) {
      const credential = parseOperatorCredential(type, presented);
      if (credential === null) return null;
      const { secret, stored } = newOperatorCredential("session");
      const order = { credential: { ...credential, type }, session: stored };
      const session = await run("openSession", order);
      return session === null ? null : { session, secret };
    },
    findSession: async (presented) => {
      const session = parseOperatorCredential("session", presented);
      return session === null ? null : run("findSession", session);
    },
    endSession: async (presented) => {
      const session = parseOperatorCredential("session", presented);
      return session !== null && run("endSession", session);
    },
    listAudit: (query) => run("listAudit", query),
  };
}

/** The first operator is called after its role: who signs in by the link has not said a name. */
function newLoginCode(): {
  readonly order: Pick<NewLoginCode, "code" | "firstOperator">;
  readonly secret: string;
} {
  const { secret, stored } = newOperatorCredential("code");
  const firstOperator = { id: newLedgerId("oper_"), name: "owner", role: "owner" } as const;
  return { order: { code: stored, firstOperator }, secret };
}
