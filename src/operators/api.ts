import { readFile } from "node:fs/promises";
import { OpenAPIHono, type z } from "@hono/zod-openapi";
import { bodyLimit } from "hono/body-limit";
import type { Prices } from "../admission/price.ts";
import { limits } from "../limits.ts";
import { addAccountRoutes } from "./account-routes.ts";
import { addGenerationRoutes } from "./generation-routes.ts";
import { addKeyRoutes } from "./key-routes.ts";
import { addLiveRoutes } from "./live-routes.ts";
import { addOperatorRoutes } from "./operator-routes.ts";
import { addPriceRoutes } from "./price-routes.ts";
import { answerProblem, problemOf, ProblemError } from "./problem.ts";
import { addReportRoutes } from "./report-routes.ts";
import { addStatementRoutes } from "./statement-routes.ts";
import type { OperatorApp, OperatorContext, OperatorVariables } from "./route.ts";
import { addServiceRoutes } from "./service-routes.ts";
import type { Timers } from "../timers.ts";
import type { PrivateAddresses } from "../webhooks/endpoint-address.ts";
import { addWebhookRoutes } from "./webhook-routes.ts";
import { addSessionRoutes, addSignIn } from "./session-routes.ts";
import { authenticate, type SignInParts } from "./sign-in.ts";
import type { WatchedService } from "./watched-service.ts";

/** What the API works with. */
export interface OperatorApiParts extends SignInParts {
  readonly newId: (prefix: string) => string;
  readonly now: () => number;
  readonly version: string;
  /** Of the settings: the list `default`, as long as the ledger has none of that name. */
  readonly prices: Prices;
  readonly service: WatchedService;
  /** Whether webhooks may lead into private networks. */
  readonly privateAddresses: PrivateAddresses;
  readonly timers: Timers;
  /** The listener ends, and its streams with it. */
  readonly closing: AbortSignal;
  readonly onFailure: (facts: { readonly requestId: string; readonly cause: unknown }) => void;
}

let document: Promise<string> | null = null;

/** The operators' API under /api/v1. `identify` says who asks; absent: a token or a session does. */
export function openOperatorApi(
  parts: OperatorApiParts,
  identify = (context: OperatorContext): Promise<void> => authenticate(context, parts),
): OperatorApp {
  const app: OperatorApp = new OpenAPIHono<{ Variables: OperatorVariables }>({
    defaultHook: (result) => {
      if (result.success) return;
      const [first] = result.error.issues;
      const issue = first === undefined ? undefined : innermost(first);
      const param = issue === undefined ? "" : paramOf(issue);
      throw new ProblemError({
        status: 400,
        code: "invalid_value",
        detail: `${param === "" ? "The body" : `\`${param}\``} ${issue === undefined ? "cannot be read" : wordsOf(issue)}.`,
        ...(param === "" ? {} : { param }),
      });
    },
  }).basePath("/api/v1");
  app.use(async (context, next) => {
    context.set("requestId", parts.newId("req_"));
    await next();
    context.header("x-request-id", context.get("requestId"));
    context.header("cache-control", "no-store");
  });
  app.onError((error, context) => {
    const requestId = context.get("requestId");
    const problem = problemOf(error);
    if (problem.status === 500) parts.onFailure({ requestId, cause: error });
    return answerProblem(problem, requestId);
  });
  app.notFound((context) => {
    const { method, path } = context.req;
    const allowed = methodsAt(app, path);
    if (allowed.length > 0) {
      const detail = `${method} is not offered here. Use ${allowed.join(" or ")}.`;
      const refused = { status: 405, code: "method_not_allowed", detail, allowed } as const;
      return answerProblem(refused, context.get("requestId"));
    }
    const problem = {
      status: 404,
      code: "not_found",
      detail: `There is no ${method} ${path}. /api/v1/openapi.json lists what there is.`,
    } as const;
    return answerProblem(problem, context.get("requestId"));
  });
  app.get("/openapi.json", async (context) => {
    document ??= readFile(new URL("openapi.json", import.meta.url), "utf8");
    return context.body(await document, 200, { "content-type": "application/json" });
  });
  app.use(bodyLimit({ maxSize: limits.operatorBodyBytesMax, onError: refuseBody }));
  addSignIn(app, parts);
  app.use(async (context, next) => {
    await identify(context);
    await next();
  });
  addSessionRoutes(app);
  addAccountRoutes(app);
  addKeyRoutes(app);
  addOperatorRoutes(app);
  addPriceRoutes(app, parts);
  addReportRoutes(app);
  addGenerationRoutes(app, parts);
  addLiveRoutes(app, parts);
  addServiceRoutes(app, parts);
  addStatementRoutes(app);
  addWebhookRoutes(app, parts);
  return app;
}

/** The methods of the routes at a path. */
function methodsAt(app: OperatorApp, path: string): readonly string[] {
  return app.openAPIRegistry.definitions.flatMap((one) => {
    if (one.type !== "route") return [];
    const pattern = `^/api/v1${one.route.path.replaceAll(/\{\w+\}/g, "[^/]+")}$`;
    return new RegExp(pattern).test(path) ? [one.route.method.toUpperCase()] : [];
  });
}

function refuseBody(): never {
  throw new ProblemError({
    status: 413,
    code: "body_too_large",
    detail: `The body has more than ${String(limits.operatorBodyBytesMax)} bytes.`,
  });
}

type Issue = z.core.$ZodIssue;

/** What is wrong in the one of several shapes that fits best; the issue itself where none does. */
function innermost(issue: Issue): Issue {
  if (issue.code !== "invalid_union") return issue;
  const [best, next] = issue.errors.toSorted((one, other) => one.length - other.length);
  const [inner] = best ?? [];
  if (inner === undefined || best?.length === next?.length) return issue;
  return { ...innermost(inner), path: [...issue.path, ...inner.path] };
}

function paramOf(issue: Issue): string {
  const path = issue.path.map(String);
  const [unknown] = issue.code === "unrecognized_keys" ? issue.keys : [];
  return [...path, ...(unknown === undefined ? [] : [unknown])].join(".");
}

function wordsOf(issue: Issue): string {
  if (issue.code === "unrecognized_keys") return "is no field of this request. Leave it out";
  // The issue does not have what was there, but its message says it.
  if (issue.code === "invalid_type" && issue.message.endsWith("received undefined"))
    return "is missing";
  return issue.code === "custom" ? issue.message : `is not right: ${lowerFirst(issue.message)}`;
}

function lowerFirst(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}
