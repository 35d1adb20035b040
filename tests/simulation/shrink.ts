import type { Plan, RequestPlan } from "./plan.ts";

/** Drops one part of the plan after another, and keeps what the violation needs. `breaks` runs a plan. */
export async function shrinkPlan(
  plan: Plan,
  breaks: (smaller: Plan) => Promise<boolean>,
): Promise<Plan> {
  let smallest = plan;
  for (let shrunk = true; shrunk;) {
    shrunk = false;
    for (const candidate of smallerPlans(smallest)) {
      if (!(await breaks(candidate))) continue;
      smallest = candidate;
      shrunk = true;
      break;
    }
  }
  return smallest;
}

/** Every plan with one part less, the larger parts first. */
function* smallerPlans(plan: Plan): Generator<Plan> {
  const { accounts, incidents, requests } = plan;
  for (const request of requests)
    yield { ...plan, requests: requests.filter((other) => other !== request) };
  for (const incident of incidents)
    yield { ...plan, incidents: incidents.filter((other) => other !== incident) };
  for (const price of plan.prices)
    yield { ...plan, prices: plan.prices.filter((other) => other !== price) };
  if (plan.weather > 0) yield { ...plan, weather: 0 };
  if (plan.replicas > 1) {
    const replicas = plan.replicas - 1;
    if (requests.every(({ replica }) => replica < replicas)) yield { ...plan, replicas };
  }
  for (const account of accounts)
    if (accounts.length > 1 && requests.every(({ accountId }) => accountId !== account.id))
      if (incidents.every(({ what }) => !("accountId" in what) || what.accountId !== account.id))
        yield { ...plan, accounts: accounts.filter((other) => other !== account) };
  for (const [index, request] of requests.entries())
    for (const simpler of simplerRequests(request))
      yield { ...plan, requests: requests.with(index, simpler) };
}

function* simplerRequests(request: RequestPlan): Generator<RequestPlan> {
  if (request.admitFault !== "none") yield { ...request, admitFault: "none" };
  for (const [index, fault] of request.settleFaults.entries())
    if (fault !== "none")
      yield { ...request, settleFaults: request.settleFaults.with(index, "none") };
  const { script } = request;
  if (request.leavesAfterMs !== null && script.ending !== "silent")
    yield { ...request, leavesAfterMs: null };
  for (const batch of script.batches)
    yield {
      ...request,
      script: { ...script, batches: script.batches.filter((other) => other !== batch) },
    };
}
