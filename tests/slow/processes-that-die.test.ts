import { expect, test } from "vitest";
import { delta, finish, openGate } from "../doubles/scripted-deployment.ts";
import { formats, post } from "../service/start-service.ts";
import { countedIn, startProcesses } from "../processes/start-processes.ts";

const body = { ...formats[0].body, max_completion_tokens: 1_000, stream: true };

async function textOf(address: string): Promise<string> {
  return (await fetch(address)).text();
}

test("a process that is killed is replaced; the others' streams go on, and what it held is given back", async () => {
  await using service = await startProcesses({ TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "100" });
  const { deployment, ledger, program, url } = service;
  const { accountId, key } = await service.newKey("1000");
  const gate = openGate();
  deployment.answerAlways(delta({ content: "half" }), gate.step, finish("stop"));
  const answers = await Promise.all(
    Array.from({ length: 12 }, () => post(`${url}/v1/chat/completions`, body, { key })),
  );
  const before = countedIn(await textOf(`${url}/metrics`), "tributary_requests_total");
  process.kill(service.processIds().get(2) ?? 0, "SIGKILL");
  const texts = answers.map((answer) => answer.text().catch(() => "broken off"));
  await program.waitFor(/"serving process ended"/);
  const givenBack = (): number =>
    service
      .lines()
      .filter(({ event }) => event === "reservations expired")
      .reduce((sum, { count }) => sum + Number(count), 0);
  await expect.poll(givenBack).toBeGreaterThan(0);
  const lost = givenBack();
  await expect
    .poll(() => service.lines().filter(({ event }) => event === "serving process started"))
    .toHaveLength(4);
  gate.open();
  const ends = (await Promise.all(texts)).map((text) => text.endsWith("data: [DONE]\n\n"));
  expect(ends.filter(Boolean)).toHaveLength(12 - lost);
  expect(lost).toBeLessThan(12);
  // What the dead one had counted is not forgotten, and its place is taken.
  expect(
    countedIn(await textOf(`${url}/metrics`), "tributary_requests_total"),
  ).toBeGreaterThanOrEqual(before);
  expect(await ledger.showAccount(accountId)).toMatchObject({ heldNanos: 0n });
  deployment.answerAlways(delta({ content: "again" }), finish("stop"));
  for (let turn = 0; turn < 6; turn += 1) {
    const again = await post(`${url}/v1/chat/completions`, body, {
      key,
      headers: { connection: "close" },
    });
    expect(await again.text()).toContain("again");
  }
  expect(await ledger.verify([])).toMatchObject({ ok: true, problems: [] });
  program.signal("SIGTERM");
  expect(await program.exited).toBe(0);
});
