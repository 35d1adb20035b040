import { z } from "@hono/zod-openapi";
import type { SessionRecord } from "../ledger/administration/session-administration.ts";
import { bodyOf, defineRoute, type OperatorApp } from "./route.ts";
import { isoTime, operatorSchema, operatorToJson, time } from "./schemas.ts";
import { signIn, type SignInParts, signOut } from "./sign-in.ts";

/** Who asks. */
export const sessionSchema = z
  .object({
    operator: operatorSchema,
    expires_at: time
      .nullable()
      .openapi({ description: "when the session ends; null: asked with a token" }),
  })
  .openapi("Session");

/** What signs in: a token, or the code of a link that works once. */
export const signInSchema = z
  .union(
    [
      z.strictObject({ token: z.string().openapi({ description: "trop_..." }) }),
      z.strictObject({
        link: z.string().openapi({ description: "what a link has after #sign-in=" }),
      }),
    ],
    { error: "it has `token`, or `link`: what a link that signs in has after #sign-in=" },
  )
  .openapi("SignIn");

const session = { description: "who asks", schema: sessionSchema } as const;
const open = defineRoute("openSession", "post /session", {
  summary: "Signs in: a session of 12 hours, whose cookie no script can read",
  security: [],
  request: bodyOf(signInSchema),
  answer: session,
});
const show = defineRoute("showSession", "get /session", {
  summary: "Who asks, and until when",
  answer: session,
});
const end = defineRoute("endSession", "delete /session", {
  summary: "Signs out",
  answer: {
    description: "whether there was a session; a token goes on",
    schema: z.object({ ended: z.boolean() }).openapi("SessionEnd"),
  },
});

/** Adds the route that signs in, which needs no token. */
export function addSignIn(app: OperatorApp, parts: SignInParts): void {
  app.openapi(open, async (context) => {
    const body = context.req.valid("json");
    const by =
      "token" in body
        ? ({ type: "token", presented: body.token } as const)
        : ({ type: "code", presented: body.link } as const);
    return context.json(toJson(await signIn(context, parts, by)), 200);
  });
}

/** Adds the routes of who has signed in. */
export function addSessionRoutes(app: OperatorApp): void {
  app.openapi(show, (context) => {
    const { operator, session: opened } = context.var;
    return context.json(
      opened === undefined
        ? { operator: operatorToJson(operator), expires_at: null }
        : toJson(opened),
      200,
    );
  });
  app.openapi(end, async (context) => context.json({ ended: await signOut(context) }, 200));
}

function toJson({ expiresAtMs, operator }: SessionRecord): z.infer<typeof sessionSchema> {
  return {
    operator: operatorToJson(operator),
    expires_at: isoTime(expiresAtMs),
  };
}
