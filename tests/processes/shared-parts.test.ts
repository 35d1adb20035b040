import { expect, test } from "vitest";
import { Failure } from "../../src/failure.ts";
import { followEngine, type EngineNote } from "../../src/deployment/embedded/engine-relay.ts";
import { OperatorError } from "../../src/ledger/operator-error.ts";
import { openChannelLine, relayCalls } from "../../src/ledger/sqlite/channel-line.ts";
import type { ToWorker } from "../../src/ledger/sqlite/thread-messages.ts";
import { connectStore } from "../../src/ledger/sqlite/worker-client.ts";
import { StoreFault } from "../../src/ledger/store-fault.ts";
import type { StoreClient } from "../../src/ledger/store-operations.ts";
import { openChannel, type ChannelMessage } from "../../src/processes/channel.ts";
import { openPoolMetrics } from "../../src/processes/pool-metrics.ts";
import type { Serving } from "../../src/processes/serving-pool.ts";
import { openLog } from "../../src/telemetry/log.ts";
import { openTelemetry, type ServiceTelemetry } from "../../src/telemetry/telemetry.ts";
import { openManualTimers } from "../doubles/manual-timers.ts";

/** A value as another process gets it. */
const copied = <Value>(value: Value): Value => structuredClone(value);

test("calls of another process are done in its name, and their refusals and faults are those of one process", async () => {
  const done: string[] = [];
  const sent: ToWorker[] = [];
  const refusals: Readonly<Record<string, Error>> = {
    admit: new Failure("insufficient_credit", "There is too little credit."),
    showAccount: new OperatorError("not_found", "There is no such account."),
    settle: new StoreFault("unavailable", "the disk is full", { reason: "disk-full" }),
  };
  const store = {
    call(name: string, argument: unknown) {
      done.push(`${name} ${String(argument)}`);
      const refusal = refusals[name];
      return refusal === undefined ? Promise.resolve({ count: 7n }) : Promise.reject(refusal);
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  } as unknown as StoreClient;
  let batches = 0;
  let heard: (message: never) => void = () => {};
  const relay = relayCalls(store, (message) => {
    batches += 1;
    heard(copied(message) as never);
  });
  const client = await connectStore(
    openChannelLine({
      send(message) {
        sent.push(message);
        relay(copied(message));
      },
      listen: (listener) => (heard = listener),
    }),
    { now: () => 5 },
  );
  const asked = ["check", "admit", "showAccount", "settle"] as const;
  const answers = await Promise.allSettled(asked.map((name) => client.call(name, "x")));
  expect(done).toEqual(asked.map((name) => `${name} x`));
  expect(answers).toMatchObject([
    { value: { count: 7n } },
    { reason: { code: "insufficient_credit" } },
    { reason: { code: "not_found", message: "There is no such account." } },
    { reason: { kind: "unavailable", reason: "disk-full" } },
  ]);
  // What one turn asks travels together, and so do its answers.
  expect([sent.length, batches]).toEqual([1, 1]);
  await client[Symbol.asyncDispose]();
  await expect(client.call("check", null)).rejects.toMatchObject({ reason: "closed" });
});

test("what one side asks the other is answered, refused with its code, or ended with it", async () => {
  interface Calls {
    double(value: bigint): Promise<bigint>;
    listen(argument: null): Promise<never>;
    wait(argument: null): Promise<never>;
  }
  const told: unknown[] = [];
  const calls = {
    double: (value: bigint) => Promise.resolve(value * 2n),
    listen: () => Promise.reject(Object.assign(new Error("in use"), { code: "EADDRINUSE" })),
    wait: () => new Promise<never>(() => {}),
    tell: (value: unknown) => told.push(value),
  };
  const there = openChannel<object>(calls, (message: ChannelMessage) =>
    here.receive(copied(message)),
  );
  const here = openChannel<Calls & { tell(value: string): void }>({}, (message) =>
    there.receive(copied(message)),
  );
  expect(await here.ask("double", 21n)).toBe(42n);
  await expect(here.ask("listen", null)).rejects.toMatchObject({
    message: "in use",
    code: "EADDRINUSE",
  });
  here.tell("tell", "something");
  expect(told).toEqual(["something"]);
  const waiting = here.ask("wait", null);
  here.close(new Error("it has ended"));
  await expect(waiting).rejects.toThrow("it has ended");
  await expect(here.ask("double", 1n)).rejects.toThrow("it has ended");
});

function telemetryOf(): ServiceTelemetry {
  const destination = { write: () => {}, flush: () => {} };
  const log = openLog({ level: "silent", format: "json", terminal: false, destination });
  return openTelemetry({ log, secrets: [], timers: openManualTimers() });
}

test("metrics are those of all processes, of one that is silent as before, and of those that have ended", async () => {
  const timers = openManualTimers();
  const telemetries = [telemetryOf(), telemetryOf(), telemetryOf()];
  const [own, first, second] = telemetries as [
    ServiceTelemetry,
    ServiceTelemetry,
    ServiceTelemetry,
  ];
  first.leasesLost({ count: 2 });
  second.leasesLost({ count: 3 });
  first.watch({ runningGenerations: () => 4 });
  second.watch({ runningGenerations: () => 5 });
  let silent = false;
  const servingOf = (process: number, telemetry: ServiceTelemetry): Serving => ({
    process,
    processId: process,
    channel: {
      ask: () =>
        (silent && process === 2
          ? new Promise(() => {})
          : telemetry.metricsSnapshot().then(copied)) as never,
      tell: () => {},
      receive: () => {},
      close: () => {},
    },
    kill: () => {},
    exited: Promise.resolve(),
  });
  let serving = [servingOf(1, first), servingOf(2, second)];
  const metrics = openPoolMetrics(own, () => serving, timers);
  const read = async (): Promise<readonly (number | undefined)[]> => {
    const reading = metrics.text();
    await new Promise((resolve) => setImmediate(resolve));
    timers.advance(10_000);
    const text = await reading;
    return ["tributary_leases_lost_total", "tributary_running_generations"].map((name) => {
      const value = new RegExp(`^${name} (.*)$`, "m").exec(text)?.[1];
      return value === undefined ? undefined : Number(value);
    });
  };
  expect(await read()).toEqual([5, 9]);
  silent = true;
  second.leasesLost({ count: 100 });
  expect(await read()).toEqual([5, 9]);
  // The second ends: its count stays, and what it was doing does not.
  const [one] = serving;
  if (one !== undefined) serving = [one];
  metrics.forget(2);
  expect(await read()).toEqual([5, 4]);
  first.leasesLost({ count: 1 });
  expect(await read()).toEqual([6, 4]);
  for (const telemetry of telemetries) telemetry[Symbol.dispose]();
});

test("an engine that another process watches is followed from its latest start on", async () => {
  const seen: string[] = [];
  const notes: EngineNote[] = [
    { type: "event", given: [{ event: "listening", port: 5 }] },
    { type: "exited", given: [{ code: 1, signal: null, output: "" }, null, 250] },
  ];
  const engine = followEngine("key", (listener) => notes.forEach(listener));
  const supervisor = engine.supervise(
    { args: [], environment: {} },
    {
      now: () => 0,
      event: ({ event }) => seen.push(event),
      exited: (_exit, _failure, restartMs) => seen.push(`again in ${String(restartMs)}`),
    },
  );
  expect([seen, supervisor.processId]).toEqual([[], null]);
  await Promise.resolve();
  expect(seen).toEqual(["listening", "again in 250"]);
});
