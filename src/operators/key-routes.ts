import { z } from "@hono/zod-openapi";
import { unknownKeyId } from "../ledger/operator-input.ts";
import type { ShownKey } from "../ledger/ledger.ts";
import type { KeyRecord } from "../ledger/records.ts";
import { versionHeader } from "./if-match.ts";
import { pageOfAll, pageParameters, pageSchema } from "./paging.ts";
import {
  administer,
  bodyOf,
  defineRoute,
  idOf,
  type OperatorApp,
  type OperatorContext,
} from "./route.ts";
import { showOnce } from "./schemas.ts";
import {
  keyPatchOf,
  keyPatchSchema,
  keySchema,
  keyToJson,
  newKeySchema,
  rotationSchema,
  shownKeySchema,
} from "./key-schemas.ts";

const accountParameter = idOf("acct_5nXbTrMv2kQ0aZe");
const keyParameter = idOf("key_5nXbTrMv2kQ0aZe");
const keys = pageSchema(keySchema, "Key");
const answered = { description: "the key", schema: keySchema } as const;

const list = defineRoute("listKeys", "get /accounts/{id}/keys", {
  summary: "The keys of an account, oldest first, the revoked ones too",
  request: { params: accountParameter, query: z.strictObject(pageParameters) },
  answer: { description: "a page of keys", schema: keys },
});
const create = defineRoute("createKey", "post /accounts/{id}/keys", {
  summary: "Makes a key; its secret is shown once",
  request: { params: accountParameter, ...bodyOf(newKeySchema) },
  answer: { description: "the key with its secret", schema: shownKeySchema },
});
const find = defineRoute("findKeys", "get /keys", {
  summary: "Whose a leaked key is, by its beginning",
  request: {
    query: z.strictObject({
      ...pageParameters,
      prefix: z
        .string()
        .regex(
          /^trib_[0-9A-Za-z]{1,32}_[0-9A-Za-z]{1,32}/,
          "begins with trib_, an account, _ and a key, of which the first letters are enough",
        )
        .openapi({
          description: "the beginning of a secret: trib_ACCOUNT_KEY",
          example: "trib_5nXbTrMv2kQ0aZe_7c",
        }),
    }),
  },
  answer: { description: "the keys, or none", schema: keys },
});
const show = defineRoute("showKey", "get /keys/{id}", {
  summary: "One key",
  request: { params: keyParameter },
  answer: answered,
});
const change = defineRoute("changeKey", "patch /keys/{id}", {
  summary: "Changes a key, from the next request on; null takes a limit or the expiry away",
  request: { params: keyParameter, headers: versionHeader, ...bodyOf(keyPatchSchema) },
  answer: answered,
});
const rotate = defineRoute("rotateKey", "post /keys/{id}/rotate", {
  summary: "Gives a key a new secret, shown once; the old one is good for overlap_seconds",
  request: {
    params: keyParameter,
    headers: versionHeader,
    body: { content: { "application/json": { schema: rotationSchema } } },
  },
  answer: { description: "the key with its new secret", schema: shownKeySchema },
});
const revoke = defineRoute("revokeKey", "delete /keys/{id}", {
  summary: "Revokes a key: it is answered 401 from the next request on",
  request: { params: keyParameter, headers: versionHeader },
  answer: answered,
});

/** Adds the routes about keys. */
export function addKeyRoutes(app: OperatorApp): void {
  app.openapi(list, async (context) => {
    const all = await context.get("ledger").listKeys(context.req.valid("param").id);
    return context.json(pageOfAll(all, context.req.valid("query"), keyToJson), 200);
  });
  app.openapi(create, async (context) => {
    const { name = "key", ...policy } = keyPatchOf(context.req.valid("json"));
    const ledger = await administer(context);
    const made = await ledger.createKey(context.req.valid("param").id, name, policy);
    return context.json(shownToJson(made), 200);
  });
  app.openapi(find, async (context) => {
    const { prefix, ...page } = context.req.valid("query");
    const found = await context.get("ledger").findKeys(prefix);
    return context.json(pageOfAll(found, page, keyToJson), 200);
  });
  app.openapi(show, async (context) =>
    context.json(keyToJson(await ensureKey(context, context.req.valid("param").id)), 200),
  );
  app.openapi(change, async (context) => {
    const to = keyPatchOf(context.req.valid("json"));
    const ledger = await administer(context);
    return context.json(keyToJson(await ledger.changeKey(context.req.valid("param").id, to)), 200);
  });
  app.openapi(rotate, async (context) => {
    const { overlap_seconds: overlap = 0 } = context.req.valid("json");
    const ledger = await administer(context);
    const rotated = await ledger.rotateKey(context.req.valid("param").id, overlap * 1_000);
    return context.json(shownToJson(rotated), 200);
  });
  app.openapi(revoke, async (context) => {
    const ledger = await administer(context);
    return context.json(keyToJson(await ledger.revokeKey(context.req.valid("param").id)), 200);
  });
}

function shownToJson({ record, secret }: ShownKey<string | null>) {
  return { ...keyToJson(record), ...showOnce(secret) };
}

async function ensureKey(context: OperatorContext, id: string): Promise<KeyRecord> {
  const key = await context.get("ledger").findKey(id);
  if (key !== null) return key;
  throw unknownKeyId(id);
}
