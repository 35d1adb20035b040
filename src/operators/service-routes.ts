import { z } from "@hono/zod-openapi";
import type { ReplicaRecord } from "../ledger/administration/replica-administration.ts";
import type { VerifyReport } from "../ledger/verify-journal.ts";
import { pageSchema } from "./paging.ts";
import { administer, defineRoute, type OperatorApp } from "./route.ts";
import { verificationSchema } from "./schemas.ts";
import {
  deploymentSchema,
  deploymentToJson,
  replicaSchema,
  replicaToJson,
  settingSchema,
  settingToJson,
  statusSchema,
} from "./service-schemas.ts";
import { webhookToJson } from "./webhook-schemas.ts";
import type { WatchedService } from "./watched-service.ts";

const status = defineRoute("showStatus", "get /status", {
  summary: "The replicas that serve this ledger, and webhooks that fail",
  answer: { description: "how they are", schema: statusSchema },
});
const drain = defineRoute("drainReplica", "post /replicas/{id}/drain", {
  summary: "Drains a replica and ends its process, as SIGTERM does, within 10 seconds",
  request: { params: z.object({ id: z.string().openapi({ example: "5nXbTrMv2kQ0aZe" }) }) },
  answer: { status: 202, description: "the replica", schema: replicaSchema },
});
const settings = defineRoute("listSettings", "get /settings", {
  summary: "The settings of the replica that is asked, and where they are from",
  answer: {
    description: "every setting; secrets are hidden",
    schema: pageSchema(settingSchema, "Setting"),
  },
});
const deployment = defineRoute("showDeployment", "get /deployment", {
  summary: "Where tokens come from",
  answer: { description: "the deployment", schema: deploymentSchema },
});
const verified = { description: "how it went", schema: verificationSchema } as const;
const verify = defineRoute("verify", "post /verify", {
  summary: "Begins to add up the whole ledger again, unless that is under way",
  answer: { status: 202, ...verified },
});
const lastVerify = defineRoute("lastVerify", "get /verify", {
  summary: "How the verification went that was begun last, of the replica that is asked",
  answer: { ...verified },
});

/** Adds the routes about the service itself. */
export function addServiceRoutes(
  app: OperatorApp,
  { now, service }: { readonly now: () => number; readonly service: WatchedService },
): void {
  const verification = openVerification(now);
  app.openapi(status, async (context) => {
    const own = await ownRecord(service, now());
    const ledger = context.get("ledger");
    const [others, webhooks] = await Promise.all([ledger.listReplicas(), ledger.listWebhooks()]);
    const known = others.find(({ id }) => id === own.id);
    const replicas = [
      ...others.filter(({ id }) => id !== own.id),
      { ...own, drainAskedBy: known?.drainAskedBy ?? null },
    ].toSorted((one, other) => one.startedAtMs - other.startedAtMs);
    const { settings: asked, version } = own.facts;
    return context.json(
      {
        replica: own.id,
        version,
        replicas: replicas.map((replica) => replicaToJson(replica, asked)),
        failing_webhooks: webhooks
          .filter(({ failingSinceMs }) => failingSinceMs !== null)
          .map(webhookToJson),
      },
      200,
    );
  });
  app.openapi(drain, async (context) => {
    const ledger = await administer(context);
    const replica = await ledger.drainReplica(context.req.valid("param").id);
    if (replica.id === service.id) service.look();
    const { settings: asked } = await service.facts();
    return context.json(replicaToJson(replica, asked), 202);
  });
  app.openapi(settings, (context) =>
    context.json({ data: service.settings().map(settingToJson), next_cursor: null }, 200),
  );
  app.openapi(deployment, async (context) => {
    const { reasons } = await service.facts();
    return context.json(deploymentToJson(service.deployment(), reasons), 200);
  });
  app.openapi(verify, (context) => {
    verification.begin(() => service.verify());
    return context.json(verification.show(), 202);
  });
  app.openapi(lastVerify, (context) => context.json(verification.show(), 200));
}

/** It may not have reported yet. */
async function ownRecord(service: WatchedService, nowMs: number): Promise<ReplicaRecord> {
  const { id, startedAtMs } = service;
  return { id, startedAtMs, seenAtMs: nowMs, drainAskedBy: null, facts: await service.facts() };
}

type VerificationJson = z.infer<typeof verificationSchema>;

/** One verification at a time, and how the last one went. */
function openVerification(now: () => number): {
  begin(work: () => Promise<VerifyReport>): void;
  show(): VerificationJson;
} {
  let last: VerificationJson = { state: "never", started_at: null, ended_at: null, report: null };
  const time = (): string => new Date(now()).toISOString();
  return {
    begin(work) {
      if (last.state === "running") return;
      const started = { started_at: time(), ended_at: null, report: null };
      last = { state: "running", ...started };
      work().then(
        ({ accounts, entries, ok, problems, problemsTotal }) => {
          const report = {
            ok,
            entries,
            accounts,
            problems: problems.map((problem) => ({ ...problem })),
            problems_total: problemsTotal,
          };
          last = { ...started, state: "ended", ended_at: time(), report };
        },
        () => (last = { ...started, state: "failed", ended_at: time() }),
      );
    },
    show: () => last,
  };
}
