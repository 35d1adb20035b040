import { type AgentResult, openWorkplace, runAgent, type Workplace } from "./run-agent.ts";
import { type Agent, contextTokens } from "./agents.ts";
import { chargeProblems, repeatedBodies, seenRequests, type SeenRequest } from "./requests.ts";
import type { Script } from "./script.ts";
import { startService, type TestService } from "../service/start-service.ts";

/** One run of an agent against a service of its own. */
export interface Trial {
  readonly environment?: Readonly<Record<string, string>>;
  /** The key that the agent has; the first account's without it. */
  readonly credit?: string;
  /** Makes the script once the service and the agent's folders are there. */
  readonly prepare: (service: TestService, workplace: Workplace) => Promise<Script>;
  /** What was wrong besides what every run is checked for. */
  readonly check: (ended: Ended) => Promise<readonly string[]> | readonly string[];
}

/** A run that is over. */
export interface Ended {
  readonly agent: Agent;
  readonly result: AgentResult;
  readonly script: Script;
  /** The agent's own requests, oldest first. */
  readonly requests: readonly SeenRequest[];
  readonly workplace: Workplace;
}

/** One cell of the table; all is well when there are no problems. */
export interface Outcome {
  readonly problems: readonly string[];
  readonly tookMs: number;
  readonly statuses: readonly string[];
  /** What the agent printed, for who looks into a problem. */
  readonly output: string;
}

const limitMs = 90_000;

/** Runs an agent and checks what holds for every run: it ended by itself, on its route, and paid for what went well. */
export async function runTrial(agent: Agent, programs: string, trial: Trial): Promise<Outcome> {
  await using service = await startService({
    ...(trial.environment === undefined ? {} : { environment: trial.environment }),
    deployment: { contextTokens },
  });
  await using workplace = await openWorkplace();
  const owner =
    trial.credit === undefined
      ? { key: service.key, accountId: service.accountId }
      : await service.newKey(trial.credit);
  const before = await service.credit(owner.accountId);
  const script = await trial.prepare(service, workplace);
  service.deployment.answerBy((request) => script.answer(request));
  const result = await runAgent({
    agent,
    programs,
    access: { url: service.url, key: owner.key },
    prompt: script.prompt,
    workplace,
    limitMs,
  });
  const after = await service.settledCredit(owner.accountId);
  const agentKeyId = `key_${owner.key.split("_")[2] ?? ""}`;
  const all = seenRequests(service);
  const requests = all.filter(({ keyId }) => keyId === agentKeyId || keyId === "null");
  const ended: Ended = { agent, result, script, requests, workplace };
  const problems = [
    ...script.problems,
    ...(result.timedOut ? [`did not end within ${String(limitMs / 1_000)} s`] : []),
    ...requests
      .filter(({ method, route }) => method === "POST" && route !== agent.route)
      .map(({ method, route }) => `${method} ${route} was called`),
    ...(await chargeProblems(service, all, {
      agentKeyId,
      spentNanos: before.balance - after.balance,
    })),
    ...(await trial.check(ended)),
  ];
  return {
    problems,
    tookMs: result.tookMs,
    statuses: requests.map(
      ({ method, status, failureCode }) =>
        `${method} ${String(status)}${failureCode === null ? "" : ` ${failureCode}`}`,
    ),
    output: `${result.stdout}\n${result.stderr}`,
  };
}

/** What is wrong where nothing may have gone wrong: a failure, an exit code, a request that is not 2xx or repeated. */
export function smoothProblems({ agent, requests, result, script }: Ended): readonly string[] {
  const generations = requests.filter(({ method }) => method === "POST");
  const titles = agent.asksForTitle ? 1 : 0;
  const wanted = script.main.length + titles;
  const repeated = repeatedBodies(script.main.map(({ body }) => body));
  return [
    ...(result.exitCode === 0 ? [] : [`exit ${String(result.exitCode)}`]),
    ...requests
      .filter(({ failureCode, status }) => status < 200 || status > 299 || failureCode !== null)
      .map(
        ({ failureCode, status }) => `a request ended with ${String(status)} ${failureCode ?? ""}`,
      ),
    ...(repeated === 0 ? [] : [`${String(repeated)} requests were repeated`]),
    ...(generations.length === wanted
      ? []
      : [`${String(generations.length)} requests for ${String(wanted)} answers`]),
  ];
}
