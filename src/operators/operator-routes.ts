import { z } from "@hono/zod-openapi";
import type { AuditRow } from "../ledger/administration/audit.ts";
import {
  administer,
  bodyOf,
  defineRoute,
  idOf,
  instant,
  type OperatorApp,
  timeOf,
} from "./route.ts";
import { numberOfCursor, pageOf, pageOfAll, pageParameters, pageSchema } from "./paging.ts";
import {
  auditSchema,
  auditToJson,
  newOperatorSchema,
  operatorSchema,
  operatorToJson,
  showOnce,
  shownOperatorSchema,
} from "./schemas.ts";

const list = defineRoute("listOperators", "get /operators", {
  summary: "All operators, oldest first, the revoked ones too",
  request: { query: z.strictObject(pageParameters) },
  answer: { description: "a page of operators", schema: pageSchema(operatorSchema, "Operator") },
});
const create = defineRoute("createOperator", "post /operators", {
  summary: "Makes an operator; its token is shown once",
  request: bodyOf(newOperatorSchema),
  answer: { description: "the operator with its token", schema: shownOperatorSchema },
});
const revoke = defineRoute("revokeOperator", "delete /operators/{id}", {
  summary: "Revokes an operator: its tokens end at once",
  request: { params: idOf("oper_5nXbTrMv2kQ0aZe") },
  answer: { description: "the operator", schema: operatorSchema },
});
const audit = defineRoute("listAudit", "get /audit", {
  summary: "Who changed what, newest first",
  request: {
    query: z.strictObject({
      ...pageParameters,
      actor: z.string().optional(),
      action: z.string().optional(),
      target: z.string().optional(),
      since: instant.optional(),
      until: instant.optional(),
    }),
  },
  answer: { description: "a page of the log", schema: pageSchema(auditSchema, "Audit") },
});
const rotate = defineRoute("rotateSealKey", "post /seal_keys", {
  summary: "A new key that seals reasoning; older ones go on opening",
  answer: {
    description: "the id of the key",
    schema: z.object({ id: z.string() }).openapi("SealKey"),
  },
});

/** Adds the routes about operators and what they changed. */
export function addOperatorRoutes(app: OperatorApp): void {
  app.openapi(list, async (context) => {
    const all = await context.get("ledger").listOperators();
    return context.json(pageOfAll(all, context.req.valid("query"), operatorToJson), 200);
  });
  app.openapi(create, async (context) => {
    const { expires_at: expires, name, role } = context.req.valid("json");
    const ledger = await administer(context);
    const order = { name, role, expiresAtMs: timeOf(expires) };
    const { record, secret } = await ledger.createOperator(order);
    return context.json({ ...operatorToJson(record), ...showOnce(secret) }, 200);
  });
  app.openapi(revoke, async (context) => {
    const ledger = await administer(context);
    const operator = await ledger.revokeOperator(context.req.valid("param").id);
    return context.json(operatorToJson(operator), 200);
  });
  app.openapi(audit, async (context) => {
    const query = context.req.valid("query");
    const { action = null, actor = null, cursor, limit, since, target = null, until } = query;
    const rows = await context.get("ledger").listAudit({
      actor,
      action,
      target,
      sinceMs: timeOf(since),
      untilMs: timeOf(until),
      before: numberOfCursor(cursor),
      rowsMax: limit + 1,
    });
    return context.json(pageOf(rows, limit, { toJson: auditToJson, cursorOf: auditCursor }), 200);
  });
  app.openapi(rotate, async (context) => {
    const { id: actor } = context.get("operator");
    // A key's secret is not kept for repeats; to rotate twice harms nothing.
    const { id } = await context.get("ledger").administer({ actor, once: null }).rotateSealKey();
    return context.json({ id }, 200);
  });
}

function auditCursor(row: AuditRow): string {
  return String(row.sequence);
}
