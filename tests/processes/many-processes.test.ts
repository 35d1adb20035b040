import { expect, test } from "vitest";
import { delta, finish, openGate } from "../doubles/scripted-deployment.ts";
import { openOperatorsAnswerCheck } from "../operators/check-operator-answer.ts";
import { formats, post } from "../service/start-service.ts";
import { inspectWith } from "../wire/watch-answers.ts";
import { countedIn, type ManyProcesses, startProcesses } from "./start-processes.ts";

const body = { ...formats[0].body, max_completion_tokens: 1_000, stream: true };

/** The number of each process, by the requests that it answered. */
function servedBy(service: ManyProcesses): ReadonlySet<unknown> {
  const requests = service.lines().filter(({ event }) => event === "request");
  return new Set(requests.map(({ process }) => process));
}

async function textOf(address: string): Promise<string> {
  return (await fetch(address)).text();
}

test("three processes spend what an account has and no more, count together, and drain as one", async () => {
  // A thousand tokens of output cost 0.004, of which the account has ten times as much.
  await using service = await startProcesses({
    TRIBUTARY_INPUT_PRICE: "0",
    TRIBUTARY_OUTPUT_PRICE: "4",
    TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "100",
  });
  const { deployment, ledger, url } = service;
  const { accountId, key } = await service.newKey("0.04");
  const gate = openGate();
  const usage = { promptTokens: 5, completionTokens: 7 };
  deployment.answerAlways(delta({ content: "half" }), gate.step, finish("stop", usage));
  const answers = await Promise.all(
    Array.from({ length: 36 }, () => post(`${url}/v1/chat/completions`, body, { key })),
  );
  const statuses = answers.map(({ status }) => status).toSorted((one, other) => one - other);
  expect(statuses).toEqual([...Array(10).fill(200), ...Array(26).fill(402)]);
  expect(await ledger.showAccount(accountId)).toMatchObject({
    balanceNanos: 40_000_000n,
    heldNanos: 40_000_000n,
  });
  expect(await textOf(`${url}/metrics`)).toContain("\ntributary_running_generations 10\n");

  // Operators see and cancel what each of the processes serves.
  inspectWith(openOperatorsAnswerCheck);
  const { secret: token } = await ledger.createOperator({
    name: "o",
    role: "owner",
    expiresAtMs: null,
  });
  const [, operators = ""] = await service.program.waitFor(/"address":"(http:[^"]+)"/);
  const askOperators = async (method: string, path: string): Promise<unknown> => {
    const headers = { authorization: `Bearer ${token}` };
    return (await fetch(`${operators}/api/v1${path}`, { method, headers })).json();
  };
  const { data: running } = (await askOperators("GET", "/generations")) as {
    data: { id: string; output_tokens_so_far: number | null }[];
  };
  expect(running.map((one) => one.output_tokens_so_far)).toEqual(Array(10).fill(1));
  await askOperators("DELETE", `/generations/${running[0]?.id ?? ""}`);
  await expect
    .poll(() => askOperators("GET", "/refusals"))
    .toMatchObject({
      data: expect.arrayContaining([
        expect.objectContaining({ request: running[0]?.id, code: "cancelled_by_operator" }),
      ]) as unknown,
    });

  // What is told to the one that started the others is told to all.
  service.program.signal("SIGTERM");
  await service.program.waitFor(/"event":"draining"/);
  await expect
    .poll(async () =>
      (await Promise.all([1, 2, 3, 4, 5, 6].map(() => fetch(`${url}/readyz`)))).map(
        ({ status }) => status,
      ),
    )
    .toEqual(Array(6).fill(503));
  const refused = await post(`${url}/v1/chat/completions`, body, { key });
  expect(refused.status).toBe(503);
  await refused.text();
  const metrics = await textOf(`${url}/metrics`);
  expect(countedIn(metrics, "tributary_requests_total")).toBeGreaterThanOrEqual(26);
  gate.open();
  const texts = await Promise.all(answers.map((answer) => answer.text()));
  expect(texts.filter((text) => text.endsWith("data: [DONE]\n\n"))).toHaveLength(9);
  expect(texts.filter((text) => text.includes("cancelled_by_operator"))).toHaveLength(1);
  expect(await service.program.exited).toBe(0);
  expect(await ledger.showAccount(accountId)).toMatchObject({
    balanceNanos: 40_000_000n - 9n * 7n * 4_000n,
    heldNanos: 0n,
  });
  expect(servedBy(service)).toEqual(new Set([1, 2, 3]));
  expect(service.lines().at(-1)).toMatchObject({ event: "stopped" });
  expect(service.program.stderr()).toBe("");
});
