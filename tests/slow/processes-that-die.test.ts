import { expect, test } from "vitest";
import { delta, finish, openGate } from "../doubles/scripted-deployment.ts";
import { formats, post } from "../service/start-service.ts";
import { countedIn, startProcesses } from "../processes/start-processes.ts";

const body = { ...formats[0].body, max_completion_tokens: 1_000, stream: true };

async function textOf(address: string): Promise<string> {
  return (await fetch(address)).text();
}

test("a process that is killed is replaced; the others' streams go on, and what it held is given back", async () => {
  await using service = await startProcesses({
    TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "100",
    // What is given back within the time of this test is given back for the death alone.
    TRIBUTARY_LEASE_SECONDS: "3600",
  });
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

test("a writer that dies is replaced while requests wait; what was answered is kept, and nothing stays held", async () => {
  const crash = new URL("../processes/crash-writer.ts", import.meta.url).href;
  await using service = await startProcesses({
    NODE_OPTIONS: `--import=${crash}`,
    TRIBUTARY_REQUESTS_PER_MINUTE: "1000000",
    TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "100",
  });
  const { deployment, ledger, program, url } = service;
  const { accountId, key } = await service.newKey("1000");
  deployment.answerAlways(delta({ content: "all" }), finish("stop"));
  const statuses = new Map<number, number>();
  const whole: string[] = [];
  const over = new AbortController();
  const clients = Array.from({ length: 8 }, async () => {
    while (!over.signal.aborted) {
      const answer = await post(`${url}/v1/chat/completions`, body, { key });
      const text = await answer.text();
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      if (text.endsWith("data: [DONE]\n\n")) whole.push(answer.headers.get("x-request-id") ?? "");
    }
  });
  for (let crashes = 0; crashes < 3; crashes += 1) {
    const before = whole.length;
    await expect.poll(() => whole.length).toBeGreaterThan(before + 50);
    program.signal("SIGUSR2");
  }
  const after = whole.length;
  await expect.poll(() => whole.length).toBeGreaterThan(after + 50);
  over.abort();
  await Promise.all(clients);
  expect([...statuses.keys()].filter((status) => status !== 200 && status !== 503)).toEqual([]);
  const receipts = await Promise.all(whole.map((id) => ledger.showReceipt(id)));
  const late = new Set(
    service
      .lines()
      .flatMap((line) => (line.event === "settlement late" ? [line["requestId"]] : [])),
  );
  expect(
    receipts.filter(({ requestId, state }) => state !== "settled" && !late.has(requestId)),
  ).toEqual([]);
  await expect.poll(async () => (await ledger.showAccount(accountId)).heldNanos).toBe(0n);
  expect(await ledger.verify([])).toMatchObject({ ok: true, problems: [] });
  expect(service.processIds().size).toBe(3);
  expect(service.lines().filter(({ event }) => event === "serving process ended")).toEqual([]);
  program.signal("SIGTERM");
  expect(await program.exited).toBe(0);
});

test("processes end with the one that started them, and what they held is given back by the next service", async () => {
  await using service = await startProcesses();
  const { deployment, ledger, program, url } = service;
  const { accountId, key } = await service.newKey("1000");
  deployment.answerAlways(delta({ content: "half" }), openGate().step);
  const answers = await Promise.all(
    [1, 2, 3].map(() => post(`${url}/v1/chat/completions`, body, { key })),
  );
  program.signal("SIGKILL");
  await program.exited;
  const isAlive = (processId: number): boolean => {
    try {
      return process.kill(processId, 0);
    } catch {
      return false;
    }
  };
  await expect.poll(() => [...service.processIds().values()].filter(isAlive)).toEqual([]);
  for (const answer of answers) await expect(answer.text()).rejects.toThrow();
  expect((await ledger.showAccount(accountId)).heldNanos).toBeGreaterThan(0n);
  expect(await ledger.giveBackDead()).toEqual({ count: 3, known: true, againInMs: null });
  expect((await ledger.showAccount(accountId)).heldNanos).toBe(0n);
  expect(await ledger.verify([])).toMatchObject({ ok: true, problems: [] });
});
