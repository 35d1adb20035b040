import { expect, test } from "vitest";
import { openWatchedService } from "../../src/cli/open-watched-service.ts";
import { hashSettings, showSettings } from "../../src/cli/shown-settings.ts";
import { parseConfig } from "../../src/config/config.ts";
import type { Environment } from "../../src/config/environment.ts";
import type {
  ReplicaFacts,
  ReplicaRecord,
} from "../../src/ledger/administration/replica-administration.ts";
import { limits } from "../../src/limits.ts";
import { openManualTimers } from "../doubles/manual-timers.ts";

function shellOf(environment: Environment) {
  return { environment: () => environment, isFromFile: (name: string) => name.endsWith("_PORT") };
}

test("settings are shown with their sources, without secrets", () => {
  const shown = showSettings(
    shellOf({
      TRIBUTARY_PORT: "9000",
      TRIBUTARY_MODEL: "https://me:MARKER@models.example/one.gguf",
      TRIBUTARY_DATABASE_URL: "postgres://me:MARKER@db/ledger",
      TRIBUTARY_DEPLOYMENT_API_KEY: "MARKER",
    }),
  );
  const of = (name: string) => shown.find((one) => one.name === name);
  expect(of("TRIBUTARY_PORT")).toMatchObject({ value: "9000", source: ".env", secret: false });
  expect(of("TRIBUTARY_HOST")).toMatchObject({ value: "127.0.0.1", source: "default" });
  expect(of("TRIBUTARY_MODEL")).toMatchObject({
    value: "https://...@models.example/one.gguf",
    source: "environment",
  });
  expect(of("TRIBUTARY_DATABASE_URL")).toMatchObject({ value: null, secret: true });
  expect(JSON.stringify(shown)).not.toContain("MARKER");
});

test("settings differ between replicas where they should not, and nowhere else", () => {
  const one = hashSettings(
    showSettings(shellOf({ TRIBUTARY_PORT: "1", TRIBUTARY_INPUT_PRICE: "1" })),
  );
  const same = hashSettings(showSettings(shellOf({ TRIBUTARY_PORT: "2" })));
  const other = hashSettings(showSettings(shellOf({ TRIBUTARY_INPUT_PRICE: "2" })));
  expect(same).toEqual(one);
  expect(Object.keys(one).filter((name) => one[name] !== other[name])).toEqual([
    "TRIBUTARY_INPUT_PRICE",
  ]);
  const keys = ["a", "b"].map((key) =>
    hashSettings(showSettings(shellOf({ TRIBUTARY_DEPLOYMENT_API_KEY: key }))),
  );
  // A hash of a secret could be guessed from.
  expect(keys[0]).toEqual(keys[1]);
  expect(keys[0]).not.toEqual(one);
});

test("a replica says every 10 s that it lives, drains when it is asked to, and is forgotten in order", async () => {
  const timers = openManualTimers();
  const said: ReplicaFacts[] = [];
  const events: string[] = [];
  let drainAskedBy: string | null = null;
  const parsed = parseConfig({}, "/srv");
  if (!parsed.ok) throw new Error("the settings are wrong");
  const ledger = {
    reportReplica(id: string, facts: ReplicaFacts): Promise<ReplicaRecord> {
      said.push(facts);
      if (events.includes("away")) return Promise.reject(new Error("no ledger"));
      return Promise.resolve({ id, startedAtMs: 0, seenAtMs: 0, drainAskedBy, facts });
    },
    forgetReplica: (id: string) => Promise.resolve(void events.push(`forgot ${id}`)),
  };
  const service = openWatchedService({
    config: parsed.config,
    shell: shellOf({}),
    gateway: {
      describe: () => ({ ready: true, model: "m", contextTokens: null, takesTools: false }),
      lookForCancelled: () => void events.push("looked"),
      reasons: () => Promise.resolve({ deployment: "away" }),
      figures: () => Promise.resolve({ outputTokens: 3, failures: {}, firstOutputsMs: [] }),
      refusals: () => Promise.resolve([]),
      running: () => Promise.resolve([{ requestId: "req_1", outputTokens: 3 }]),
    },
    ledger: () => Promise.resolve(ledger),
    stop: () => void events.push("stopped"),
    timers,
  });
  await expect.poll(() => said.length).toBe(1);
  expect(said[0]).toMatchObject({ running: 1, reasons: { deployment: "away" }, draining: false });
  service.tell({ operators: "http://127.0.0.1:1" });
  await expect.poll(() => said.at(-1)?.operators).toBe("http://127.0.0.1:1");
  // A ledger that is away ends nothing.
  events.push("away");
  const before = said.length;
  await expect
    .poll(() => timers.advance(limits.replicaReportMs) ?? said.length)
    .toBeGreaterThan(before);
  events.splice(0);
  drainAskedBy = "oper_1";
  service.look();
  await expect.poll(() => events).toContain("stopped");
  expect(events[0]).toBe("looked");
  await service[Symbol.asyncDispose]();
  expect(events.at(-1)).toBe(`forgot ${service.id}`);
  const last = said.length;
  timers.advance(limits.replicaReportMs * 3);
  service.look();
  await Promise.resolve();
  expect(said).toHaveLength(last);
});
