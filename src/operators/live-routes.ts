import { getCookie } from "hono/cookie";
import { z } from "@hono/zod-openapi";
import { limits } from "../limits.ts";
import { LiveHub, type LiveHubParts } from "./live-hub.ts";
import { liveNowSchema } from "./live-now.ts";
import { ProblemError } from "./problem.ts";
import { answerStream, defineRoute, type OperatorApp, type OperatorContext } from "./route.ts";
import { generationSchema } from "./service-schemas.ts";
import { cookieOf, tokenOf } from "./sign-in.ts";

/** What of the running requests is new, as the event `generations` has it. */
export const liveGenerationsSchema = z.object({
  reset: z.boolean().openapi({ description: "what came before is forgotten; the first has it" }),
  running: z.int().openapi({
    description: "requests under way on all replicas; the newest 5,000 of them are listed",
  }),
  data: z
    .array(generationSchema)
    .openapi({ description: "those that are new or were cancelled, in no order" }),
  removed: z.array(z.string()).openapi({
    description: "ids of those that have ended, or that are no more among the newest",
  }),
  output_tokens: z.record(z.string(), z.int()).openapi({
    description: "by id, of those that the replica that is asked serves, where they have moved",
  }),
});

/** The members of an event, as the document names them. */
function namesOf({ shape }: { readonly shape: object }): string {
  return Object.keys(shape)
    .map((name) => `\`${name}\``)
    .join(", ");
}

const watch = defineRoute("watchLive", "get /live", {
  summary: "What happens now, as server-sent events",
  answer: {
    description: `\`now\` has ${namesOf(liveNowSchema)}, and \`generations\` ${namesOf(liveGenerationsSchema)}, at most once a second each, when they differ from the last; \`problem\` has \`code\` and \`detail\` while the ledger cannot be asked; \`end\` is the last one where the operator was revoked or the session is over`,
    schema: z.string(),
    stream: true,
  },
});

/** Adds the route of what happens now. */
export function addLiveRoutes(
  app: OperatorApp,
  parts: Omit<LiveHubParts, "onFailure"> & {
    readonly newId: (prefix: string) => string;
    readonly onFailure: (facts: { readonly requestId: string; readonly cause: unknown }) => void;
  },
): void {
  const hub = new LiveHub({
    ...parts,
    onFailure: (cause) => parts.onFailure({ requestId: parts.newId("req_"), cause }),
  });
  app.openapi(watch, (context) => {
    if (hub.isFull)
      throw new ProblemError({
        status: 429,
        code: "too_many_streams",
        detail: `There are ${String(limits.liveStreamsMax)} live streams already, which is as many as a replica has. End one, or ask GET /generations and /status now and then.`,
        retryAfterSeconds: 10,
      });
    return answerStream(hub.open(stillMay(context, parts)));
  });
}

/** Asks the ledger again for what the request came with. */
function stillMay(
  context: OperatorContext,
  { ledger }: Pick<LiveHubParts, "ledger">,
): () => Promise<boolean> {
  const token = tokenOf(context);
  const session = getCookie(context, cookieOf(context));
  return async () => {
    const opened = await ledger();
    if (token !== undefined) return (await opened.findOperator(token)) !== null;
    return session !== undefined && (await opened.findSession(session)) !== null;
  };
}
