import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { announce } from "../../src/cli/announce.ts";
import { type Config, parseConfig } from "../../src/config/config.ts";
import type { Gateway } from "../../src/gateway.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tributary-announce-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const secret = `trib_a_k_${"x".repeat(43)}`;
const first: NonNullable<Gateway["first"]> = {
  account: {
    id: "acct_a",
    name: "first",
    balanceNanos: 10_000_000_000n,
    heldNanos: 0n,
    running: 0,
    createdAtMs: 0,
    status: "active",
    priceList: null,
    lowBalanceNanos: null,
    grant: null,
    grantLeftNanos: 0n,
    limits: { concurrentRequests: null, requestsPerMinute: null, outputTokensMax: null },
    externalId: null,
    metadata: {},
    version: 1,
    head: null,
  },
  key: {
    id: "key_k",
    accountId: "acct_a",
    name: "first",
    scopes: ["generate", "read"],
    status: "active",
    expiresAtMs: null,
    limits: { requestsPerMinute: null, outputTokensMax: null },
    createdAtMs: 0,
    revokedAtMs: null,
    lastUsedAtMs: null,
    previousUntilMs: null,
    budget: null,
    version: 1,
  },
  secret,
};

interface Told {
  readonly screen: string;
  readonly events: readonly { readonly event: string; readonly fields: object }[];
}

async function tell(settings: {
  readonly terminal?: boolean;
  readonly pretty?: boolean;
  readonly first?: Gateway["first"];
  readonly readyAfter?: number;
  readonly downloading?: boolean;
  readonly dataDir?: string;
  readonly loginLink?: () => Promise<string | null>;
}): Promise<Told> {
  const screen: string[] = [];
  const events: { event: string; fields: object }[] = [];
  let asked = 0;
  const gateway: Pick<Gateway, "address" | "describe" | "first"> = {
    address: { host: "127.0.0.1", port: 8080, url: "http://127.0.0.1:8080" },
    first: settings.first === undefined ? first : settings.first,
    describe: () => {
      const ready = asked >= (settings.readyAfter ?? 0);
      asked += 1;
      return {
        ready,
        model: "smollm2-135m-instruct",
        contextTokens: 8192,
        takesTools: true,
      };
    },
  };
  await announce(gateway, {
    config: configOf(settings.dataDir ?? folder),
    log: { pretty: settings.pretty ?? true, print: (text) => void screen.push(text) },
    shell: {
      programName: "tributary",
      stdout: { write: () => {}, terminal: settings.terminal ?? true },
    },
    telemetry: { lifecycle: (event, fields) => void events.push({ event, fields }) },
    stop: new Promise(() => {}),
    isDownloading: () => settings.downloading ?? false,
    loginLink: settings.loginLink ?? (() => Promise.resolve("http://127.0.0.1:8081/#sign-in=x")),
  });
  return { screen: screen.join(""), events };
}

function configOf(dataDir: string): Config {
  const parsed = parseConfig({ TRIBUTARY_DATA_DIR: dataDir }, folder);
  if (!parsed.ok) throw new Error("the settings are wrong");
  return parsed.config;
}

test("a terminal is shown the key and the name of the model, and no file is written", async () => {
  const { events, screen } = await tell({});
  expect(screen).toContain(`\n${secret}\n`);
  expect(screen).toContain("with smollm2-135m-instruct\n");
  expect(events.map(({ event }) => event)).toEqual(["listening"]);
  expect(existsSync(join(folder, "first-key"))).toBe(false);
});

test("a terminal is shown a link that signs in, and starts without one where it cannot be made", async () => {
  const { screen } = await tell({});
  expect(screen).toContain("\nhttp://127.0.0.1:8081/#sign-in=x\n");
  const without = await tell({ loginLink: () => Promise.reject(new Error("no port")) });
  expect(without.screen).toContain(`\n${secret}\n`);
  expect(without.screen).not.toContain("Sign in");
});

test.each([
  { terminal: false, pretty: false },
  { terminal: false, pretty: true },
  { terminal: true, pretty: false },
])(
  "elsewhere the key is in a file for this user alone, and the log names it: %o",
  async (where) => {
    const path = join(folder, "first-key");
    // Left by a ledger that was deleted, and readable by every user.
    writeFileSync(path, "trib_old\n", { mode: 0o644 });
    const loginLink = vi.fn(() => Promise.resolve("http://127.0.0.1:8081/#sign-in=x"));
    const told = await tell({ ...where, loginLink });
    expect(loginLink).not.toHaveBeenCalled();
    expect(readFileSync(path, "utf8")).toBe(`${secret}\n`);
    expect((statSync(path).mode & 0o777).toString(8)).toBe("600");
    expect(told.events[1]).toEqual({
      event: "first_key",
      fields: { accountId: "acct_a", accountName: "first", balance: "10", file: path },
    });
    expect(JSON.stringify(told)).not.toContain("trib_");
  },
);

test("the folder of that file is made when the ledger is elsewhere", async () => {
  const dataDir = join(folder, "data");
  await tell({ terminal: false, dataDir });
  expect(readFileSync(join(dataDir, "first-key"), "utf8")).toBe(`${secret}\n`);
});

test("a file that cannot be written is said, without the key", async () => {
  const told = await tell({ terminal: false, dataDir: join(folder, "missing", "data") });
  expect(told.events[1]).toMatchObject({
    event: "first_key not written",
    fields: { accountId: "acct_a", reason: expect.stringContaining("ENOENT") as string },
  });
  expect(JSON.stringify(told)).not.toContain("trib_");
});

test("nothing is written when there was an account already", async () => {
  const told = await tell({ terminal: false, first: null });
  expect(told.events.map(({ event }) => event)).toEqual(["listening"]);
  expect(existsSync(join(folder, "first-key"))).toBe(false);
  expect((await tell({ first: null })).screen).toContain("tributary key create ACCOUNT");
});

test("the first screen waits for weights that load, and not for those that are downloaded", async () => {
  expect((await tell({ readyAfter: 3 })).screen).not.toContain("not there yet");
  expect((await tell({ readyAfter: 3, downloading: true })).screen).toContain("not there yet");
});
