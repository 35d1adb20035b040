import { copyFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it } from "vitest";
import { movedMark, setMark } from "../../src/ledger/sqlite/file-mark.ts";
import { openRecordingShell } from "../cli/recording-shell.ts";
import { expectRefusal, shapeOf } from "./refusals.ts";
import { formats, startService, type TestService } from "./start-service.ts";

const [chat] = formats;

function pathOf(service: TestService): string {
  if (service.config.database.kind !== "sqlite") throw new Error("there is no file");
  return service.config.database.path;
}

function toldGone(service: TestService): readonly string[] {
  return service.logLines.filter((line) => line.includes('"event":"ledger gone"'));
}

/** Files are looked at now and then; the mark with each transaction. */
async function noticed(service: TestService): Promise<void> {
  await expect.poll(() => toldGone(service).length).toBe(1);
}

/** No format is served, the service is not ready, and the log says why. */
async function expectNoAdmission(service: TestService, says: RegExp): Promise<void> {
  for (const { body, path } of formats) {
    const response = await service.post(path, body);
    expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
    await expectRefusal(response, {
      code: "overloaded",
      shape: shapeOf(path),
      says: /cannot reach its ledger/,
    });
  }
  expect((await fetch(`${service.url}/readyz`)).status).toBe(503);
  const told = toldGone(service);
  expect(told[0]).toMatch(says);
  // Where it went and what to do, and nothing of it to the caller.
  expect(told[0]).toContain('"remedy":"');
  expect(service.deployment.requests).toHaveLength(0);
}

describe("a ledger that is not where it was", () => {
  it("is not spent from after it was moved under an idle service", async () => {
    await using service = await startService();
    using database = new DatabaseSync(pathOf(service));
    setMark(database, movedMark);
    expect((await service.post(chat.path, chat.body)).status).toBe(503);
    await noticed(service);
    await expectNoAdmission(
      service,
      /was moved to PostgreSQL.*"remedy":"[^"]*TRIBUTARY_DATABASE_URL/,
    );
    const entries = database.prepare("select count(*) as count from entry").get();
    expect(entries?.["count"]).toBe(1);
  });

  it("is not moved as long as a service has it open", async () => {
    await using service = await startService();
    const command = openRecordingShell(dirname(pathOf(service)), {
      TRIBUTARY_DATA_DIR: dirname(pathOf(service)),
    });
    const { exitCode, stderr } = await command(
      "ledger",
      "move",
      "--to",
      "postgres://h/d",
      "--json",
    );
    expect([exitCode, stderr]).toEqual([1, expect.stringContaining("1 service has this ledger")]);
    expect(stderr).toContain("Stop every service");
    expect((await service.post(chat.path, chat.body)).status).toBe(200);
  });

  it("is missed when its file was deleted", async () => {
    await using service = await startService();
    rmSync(pathOf(service));
    await noticed(service);
    await expectNoAdmission(service, /ledger\.sqlite was deleted or renamed/);
  });

  it("is missed when its file was replaced, and is there again when the file is put back", async () => {
    await using service = await startService();
    const path = pathOf(service);
    const aside = `${path}-aside`;
    renameSync(path, aside);
    copyFileSync(aside, path);
    await noticed(service);
    await expectNoAdmission(service, /ledger\.sqlite is another file/);
    renameSync(aside, path);
    await expect
      .poll(async () => (await service.post(chat.path, chat.body)).status, { interval: 20 })
      .toBe(200);
    const back = (): boolean =>
      service.logLines.some((line) => line.includes('"event":"ledger back"'));
    await expect.poll(back).toBe(true);
  });

  it("is missed when its log was removed, as for a restored backup", async () => {
    await using service = await startService();
    rmSync(`${pathOf(service)}-wal`);
    await noticed(service);
    await expectNoAdmission(service, /ledger\.sqlite-wal was deleted/);
  });

  it("is missed when a smaller file was written over it", async () => {
    await using service = await startService();
    const path = pathOf(service);
    writeFileSync(path, "");
    await noticed(service);
    await expectNoAdmission(service, /was overwritten/);
  });
});

it("leaves nothing beside the ledger when it ends", async () => {
  const service = await startService();
  const path = pathOf(service);
  const process = (): string[] =>
    readdirSync(dirname(path)).filter((name) => name.startsWith(`${basename(path)}-process-`));
  expect(process()).toHaveLength(1);
  await service.gateway[Symbol.asyncDispose]();
  expect(process()).toHaveLength(0);
  await service[Symbol.asyncDispose]();
});
