import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startOperators } from "../operators/start-operators.ts";
import { openAnswerCheck } from "../wire/check-answer.ts";
import { inspectWith } from "../wire/watch-answers.ts";
import { openFakeEngine } from "./fake-engine.ts";
import { openRecordingShell } from "./recording-shell.ts";

inspectWith(openAnswerCheck);

let folder = "";
let run: ReturnType<typeof openRecordingShell>;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "tributary-prices-"));
  run = openRecordingShell(folder, { TRIBUTARY_SQLITE_SYNCHRONOUS: "normal" });
});
afterAll(() => rmSync(folder, { recursive: true }));

async function json(...words: readonly string[]): Promise<unknown> {
  const { stderr, stdout } = await run(...words, "--json");
  return JSON.parse(stdout === "" ? stderr : stdout) as unknown;
}

describe("price", () => {
  it("shows the settings as `default`, makes lists, changes them and gives them to accounts", async () => {
    const { id } = (await json("account", "create", "shop")) as { id: string };
    expect(await json("price", "show", "default")).toEqual({
      name: "default",
      source: "settings",
      prices: [{ effective_from: null, input: "1", cached_input: "1", output: "4" }],
      created_at: null,
      version: 0,
    });
    const change = ["price", "change", "team", "--input", "2", "--output", "8"];
    expect(await json(...change)).toMatchObject({ error: { code: "not_found" } });
    const made = await run("price", "create", "team", "--input", "1", "--output", "3");
    expect(made.stdout).toMatch(/^team +20\S+Z +1 +1 +3$/m);
    const later = [...change, "--cached-input", "0.2", "--from", "2099-01-01"];
    expect(await json(...later)).toMatchObject({
      version: 2,
      prices: [
        { input: "1" },
        {
          effective_from: "2099-01-01T00:00:00.000Z",
          input: "2",
          cached_input: "0.2",
          output: "8",
        },
      ],
    });
    // Another price of the same time takes its place; the one that holds now stays.
    const dearer = ["--input", "3", "--output", "9", "--from", "2099-01-01T01:00:00+01:00"];
    expect(await json("price", "change", "team", ...dearer)).toMatchObject({
      prices: [{ input: "1" }, { input: "3", output: "9" }],
    });
    expect((await run("price", "list")).stdout).toMatch(
      /^default +the settings +1 +1 +4\nteam +20\S+ +1 +1 +3\nteam +2099-01-01T00:00:00.000Z +3 +3 +9$/m,
    );
    expect(await json("account", "price", id, "team")).toMatchObject({ id, price_list: "team" });
    expect(await json("account", "price", id, "none")).toMatchObject({
      error: { code: "not_found" },
    });
    expect(await json("price", "remove", "team", "--from", "2099-01-01")).toMatchObject({
      prices: [{ input: "1" }],
    });
    expect(await json("price", "remove", "team", "--from", "2099-01-01")).toMatchObject({
      error: { code: "not_found" },
    });
    expect((await run("audit", "--target", "team")).stdout).toMatch(/price_list\.change +team/);
  });

  it.each([
    [["--input", "x", "--output", "1"], "--input"],
    [["--input", "1", "--output", "-1"], "--output"],
    [["--input", "1", "--output", "1000001"], "--output"],
    [["--input", "1", "--output", "1", "--cached-input", "1.0000000001"], "--cached-input"],
    [["--input", "1", "--output", "1", "--from", "2020-01-01"], "--from"],
    [["--input", "1"], "--output"],
  ])("is misused with %j", async (options, words) => {
    const result = await run("price", "create", "bad", ...options);
    expect(result).toMatchObject({ exitCode: 2, stdout: "" });
    expect(result.stderr).toContain(words);
  });

  it("does the same from afar with --url", async () => {
    await using operators = await startOperators();
    const ask = openRecordingShell(folder, { TRIBUTARY_OPERATOR_TOKEN: operators.token });
    const afar = async (...argv: readonly string[]): Promise<unknown> => {
      const result = await ask(...argv, "--url", operators.url, "--json");
      expect(result).toMatchObject({ exitCode: 0, stderr: "" });
      return JSON.parse(result.stdout) as unknown;
    };
    const now = { input: "1", cached_input: "0.1", output: "3" };
    const options = ["--input", "1", "--cached-input", "0.1", "--output", "3"];
    expect(await afar("price", "create", "afar", ...options)).toMatchObject({ prices: [now] });
    const change = ["price", "change", "afar", "--input", "2", "--output", "8", "--from"];
    await afar(...change, "2098-01-01");
    expect(await afar(...change, "2099-01-01")).toMatchObject({
      prices: [now, { input: "2" }, { effective_from: "2099-01-01T00:00:00.000Z" }],
    });
    expect(await afar("price", "remove", "afar", "--from", "2098-01-01")).toMatchObject({
      prices: [now, { effective_from: "2099-01-01T00:00:00.000Z" }],
    });
    expect(await afar("price", "list")).toMatchObject([{ name: "afar" }, { name: "default" }]);
    expect(await afar("price", "show", "default")).toMatchObject({ source: "settings" });
    const { id } = (await afar("account", "create", "shop")) as { id: string };
    expect(await afar("account", "price", id, "afar")).toMatchObject({ price_list: "afar" });
  });

  it("has `doctor` say whose prices hold", async () => {
    await using engine = await openFakeEngine();
    const examine = openRecordingShell(folder, {
      TRIBUTARY_SQLITE_SYNCHRONOUS: "normal",
      TRIBUTARY_DEPLOYMENT_URL: engine.url,
    });
    const ledgerLine = async (): Promise<unknown> => {
      const { checks } = JSON.parse((await examine("doctor", "--json")).stdout) as {
        checks: readonly { name: string; message: string }[];
      };
      return checks.find(({ name }) => name === "ledger")?.message;
    };
    const list = ["price", "create", "default", "--input", "1", "--output", "2"];
    await run(...list, "--from", "2099-01-01");
    expect(await ledgerLine()).toContain(
      "; from 2099-01-01T00:00:00.000Z on prices are those of its list `default`, until then",
    );
    await run("price", "change", "default", "--input", "1", "--output", "2");
    expect(await ledgerLine()).toContain(
      "; prices are those of its list `default`, not TRIBUTARY_INPUT_PRICE and TRIBUTARY_OUTPUT_PRICE",
    );
  });
});
