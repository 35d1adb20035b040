import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fetchModel, findModel, listModels } from "../src/models.ts";
import { openFakeModelHost } from "./fake-model-host.ts";
import { writeTinyModel } from "./make-tiny-model.ts";

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const patienceMs = 30_000;
const mebibyte = 2 ** 20;

describe("models from addresses", () => {
  let dataDir = "";
  let cacheDir = "";

  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), "fetched-"));
    cacheDir = join(dataDir, "cache");
  });

  afterEach(() => rm(dataDir, { recursive: true, force: true }));

  async function fetch(
    model: string,
    environment: Record<string, string> = {},
    onProgress: (bytes: number) => void = () => undefined,
  ): Promise<string> {
    return fetchModel(findModel(model), {
      folders: { dataDir, cacheDir },
      environment,
      thorough: false,
      onProgress: ({ bytes }) => onProgress(bytes),
      signal: AbortSignal.timeout(patienceMs),
    });
  }

  function tinyModel(): Buffer {
    const path = join(dataDir, "made.gguf");
    writeTinyModel(path);
    return readFileSync(path);
  }

  it(
    "fetches a URL with progress, keeps it in the cache, lists it, and asks nobody again",
    async () => {
      const weights = tinyModel();
      await using host = await openFakeModelHost({ files: { "/a/tiny.gguf": weights } });
      const progress: number[] = [];
      const path = await fetch(`${host.url}/a/tiny.gguf?key=secret`, {}, (bytes) =>
        progress.push(bytes),
      );
      expect(path.startsWith(join(cacheDir, "models"))).toBe(true);
      expect(path).toMatch(/\/tiny\.gguf$/);
      expect(readFileSync(path).equals(weights)).toBe(true);
      expect(progress.at(-1)).toBe(weights.length);
      const listed = (await listModels({ cacheDir, dataDir })).at(-1);
      expect(listed).toMatchObject({
        name: `${host.url}/a/tiny.gguf`,
        path,
        bytes: weights.length,
      });
      const before = host.requests.length;
      expect(await fetch(`${host.url}/a/tiny.gguf?key=secret`)).toBe(path);
      expect(host.requests).toHaveLength(before);
    },
    patienceMs,
  );

  it(
    "asks Hugging Face, or a mirror of it, for hf:OWNER/REPOSITORY/FILE, with the token and for the hash",
    async () => {
      const weights = tinyModel();
      const file = "/ada/tiny-GGUF/resolve/main/q4/tiny.gguf";
      await using host = await openFakeModelHost({
        files: { [file]: weights },
        linkedEtag: `"${sha256(weights)}"`,
        authorization: "Bearer hf_secret",
      });
      const environment = { HF_ENDPOINT: host.url, HF_TOKEN: "hf_secret" };
      const path = await fetch("hf:ada/tiny-GGUF/q4/tiny.gguf", environment);
      expect(readFileSync(path).equals(weights)).toBe(true);
      expect(new Set(host.requests.map((request) => request.path))).toEqual(new Set([file]));
      await rm(path);
      host.behaviour.linkedEtag = `"${"0".repeat(64)}"`;
      const failed = fetch("hf:ada/tiny-GGUF/q4/tiny.gguf", environment);
      await expect(failed).rejects.toThrow(/has the SHA-256 \w+, expected was 0{64}/);
      await expect(
        fetch("hf:ada/tiny-GGUF/q4/tiny.gguf", { HF_ENDPOINT: host.url }),
      ).rejects.toThrow(/answered 401.*HF_TOKEN/);
      await expect(fetch("hf:ada/tiny-GGUF/other.gguf#v2", environment)).rejects.toThrow(
        /answered 404: there is no such file/,
      );
      expect(host.requests.at(-1)?.path).toBe("/ada/tiny-GGUF/resolve/v2/other.gguf");
    },
    patienceMs,
  );

  it(
    "keeps only what has the hash in the address, and gives name and password to that host",
    async () => {
      const weights = tinyModel();
      const authorization = `Basic ${Buffer.from("me:pass").toString("base64")}`;
      await using host = await openFakeModelHost({ files: { "/t.gguf": weights }, authorization });
      const url = `${host.url.replace("//", "//me:pass@")}/t.gguf`;
      const wrong = fetch(`${url}#sha256=${"a".repeat(64)}`);
      await expect(wrong).rejects.toThrow(/expected was a{64}/);
      await expect(wrong).rejects.not.toThrow(/pass@/);
      const path = await fetch(`${url}#sha256=${sha256(weights)}`);
      expect(readFileSync(path).equals(weights)).toBe(true);
    },
    patienceMs,
  );

  it(
    "goes on where a process that was killed stopped",
    async () => {
      const weights = Buffer.alloc(40 * mebibyte, "GGUF then some bytes that differ, 0123456789");
      await using host = await openFakeModelHost({ files: { "/big.gguf": weights }, slow: true });
      const program = join(import.meta.dirname, "../src/main.ts");
      const pull = spawn(process.execPath, [program, "pull", `--cache-dir=${cacheDir}`], {
        env: { TRIBUTARY_MODEL: `${host.url}/big.gguf` },
        stdio: ["ignore", "pipe", "inherit"],
      });
      for await (const line of createInterface({ input: pull.stdout })) {
        const { bytes = 0, event } = JSON.parse(line) as { event: string; bytes?: number };
        if (event === "weights progress" && bytes > 24 * mebibyte) pull.kill("SIGKILL");
      }
      expect(pull.killed).toBe(true);
      const before = host.requests.length;
      host.behaviour.slow = false;
      const path = await fetch(`${host.url}/big.gguf`);
      expect(readFileSync(path).equals(weights)).toBe(true);
      const ranges = host.requests.slice(before).filter(({ from }) => from !== null);
      const asked = ranges.reduce((sum, { bytes }) => sum + bytes, 0);
      expect(asked).toBeGreaterThan(0);
      expect(asked).toBeLessThan(weights.length - 8 * mebibyte);
    },
    patienceMs,
  );

  it(
    "fetches again what was damaged on disk",
    async () => {
      const weights = tinyModel();
      await using host = await openFakeModelHost({ files: { "/t.gguf": weights } });
      const path = await fetch(`${host.url}/t.gguf`);
      const spoilt = Buffer.from(weights);
      spoilt[999] = (spoilt[999] ?? 0) ^ 1;
      writeFileSync(path, spoilt);
      expect(await fetch(`${host.url}/t.gguf`)).toBe(path);
      expect(readFileSync(path).equals(weights)).toBe(true);
    },
    patienceMs,
  );

  it(
    "says at once what is wrong without a network, and with what is no model",
    async () => {
      const host = await openFakeModelHost({ files: { "/page.gguf": Buffer.from("<html>") } });
      await expect(fetch(`${host.url}/page.gguf`)).rejects.toThrow(/not in the GGUF format/);
      expect(readdirSync(join(cacheDir, "models")).length).toBe(1);
      await host[Symbol.asyncDispose]();
      const environment = { HF_ENDPOINT: host.url };
      for (const model of [`${host.url}/t.gguf`, "hf:ada/tiny/tiny.gguf"]) {
        const failed = fetch(model, environment);
        await expect(failed).rejects.toThrow(/cannot be reached \(.*ECONNREFUSED/);
        for (const words of ["HTTPS_PROXY", "TRIBUTARY_MODEL", "TRIBUTARY_DEPLOYMENT_URL"])
          await expect(failed).rejects.toThrow(words);
      }
    },
    patienceMs,
  );
});
