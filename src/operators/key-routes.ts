import { z } from "@hono/zod-openapi";
import { OperatorError } from "../ledger/operator-error.ts";
import type { KeyRecord } from "../ledger/records.ts";
import {
  administer,
  bodyOf,
  defineRoute,
  idOf,
  type OperatorApp,
  type OperatorContext,
} from "./route.ts";
import { keySchema, keyToJson, newKeySchema, shownKeySchema } from "./schemas.ts";

const accountParameter = idOf("acct_5nXbTrMv2kQ0aZe");
const keyParameter = idOf("key_5nXbTrMv2kQ0aZe");
const keys = z.object({ data: z.array(keySchema) }).openapi("Keys");
const answered = { status: 200, description: "the key", schema: keySchema } as const;

const list = defineRoute(
  "listKeys",
  {
    method: "get",
    path: "/accounts/{id}/keys",
    summary: "The keys of an account, oldest first, the revoked ones too",
    request: { params: accountParameter },
  },
  { status: 200, description: "the keys", schema: keys },
);
const create = defineRoute(
  "createKey",
  {
    method: "post",
    path: "/accounts/{id}/keys",
    summary: "Makes a key; its secret is shown once",
    request: { params: accountParameter, ...bodyOf(newKeySchema) },
  },
  { status: 200, description: "the key with its secret", schema: shownKeySchema },
);
const find = defineRoute(
  "findKeys",
  {
    method: "get",
    path: "/keys",
    summary: "Whose a leaked key is, by its beginning",
    request: {
      query: z.strictObject({
        prefix: z
          .string()
          .regex(
            /^trib_[0-9A-Za-z]{1,32}_[0-9A-Za-z]{1,32}/,
            "begins with trib_, an account and a key",
          )
          .openapi({ description: "the beginning of a secret: trib_ACCOUNT_KEY" }),
      }),
    },
  },
  { status: 200, description: "the key, or none", schema: keys },
);
const show = defineRoute(
  "showKey",
  { method: "get", path: "/keys/{id}", summary: "One key", request: { params: keyParameter } },
  answered,
);
const revoke = defineRoute(
  "revokeKey",
  {
    method: "delete",
    path: "/keys/{id}",
    summary: "Revokes a key: it is answered 401 from the next request on",
    request: { params: keyParameter },
  },
  answered,
);

/** Adds the routes about keys. */
export function addKeyRoutes(app: OperatorApp): void {
  app.openapi(list, async (context) => {
    const found = await context.get("ledger").listKeys(context.req.valid("param").id);
    return context.json({ data: found.map(keyToJson) }, 200);
  });
  app.openapi(create, async (context) => {
    const { name = "" } = context.req.valid("json");
    const ledger = await administer(context);
    const account = context.req.valid("param").id;
    const { record, secret } = await ledger.createKey(account, name === "" ? "key" : name);
    return context.json({ ...keyToJson(record), secret, secret_shown: secret === null }, 200);
  });
  app.openapi(find, async (context) => {
    const [, , id = ""] = context.req.valid("query").prefix.split("_");
    const key = await context.get("ledger").findKey(`key_${id}`);
    return context.json({ data: key === null ? [] : [keyToJson(key)] }, 200);
  });
  app.openapi(show, async (context) =>
    context.json(keyToJson(await ensureKey(context, context.req.valid("param").id)), 200),
  );
  app.openapi(revoke, async (context) => {
    const ledger = await administer(context);
    return context.json(keyToJson(await ledger.revokeKey(context.req.valid("param").id)), 200);
  });
}

async function ensureKey(context: OperatorContext, id: string): Promise<KeyRecord> {
  const key = await context.get("ledger").findKey(id);
  if (key !== null) return key;
  throw new OperatorError("not_found", `There is no key ${id}.`);
}
