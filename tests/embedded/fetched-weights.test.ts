import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { openEmbeddedDeployment } from "../../src/deployment/embedded/deployment.ts";
import { fetchModel, findModel, listModels } from "../../src/deployment/embedded/models.ts";
import { answer, untilReady } from "./ask.ts";
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
    "goes on where it was stopped",
    async () => {
      const weights = Buffer.alloc(40 * mebibyte, "GGUF then some bytes that differ, 0123456789");
      await using host = await openFakeModelHost({ files: { "/big.gguf": weights }, slow: true });
      const stop = new AbortController();
      const stopped = fetchModel(findModel(`${host.url}/big.gguf`), {
        folders: { dataDir, cacheDir },
        environment: {},
        thorough: false,
        onProgress: ({ bytes }) => {
          if (bytes > 24 * mebibyte) stop.abort();
        },
        signal: stop.signal,
      });
      await expect(stopped).rejects.toThrow(/abort/i);
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

  it(
    "serves one, and fetches it once more when it does not load",
    async () => {
      const weights = tinyModel();
      await using host = await openFakeModelHost({ files: { "/t.gguf": weights } });
      const path = await fetch(`${host.url}/t.gguf`);
      // Damage that no time tells of: the mark beside the file says that it was checked like this.
      writeFileSync(
        path,
        Buffer.concat([weights.subarray(0, 4), Buffer.alloc(weights.length - 4, 1)]),
      );
      const { ctimeNs, mtimeNs, size } = statSync(path, { bigint: true });
      const mark = [sha256(weights), size, mtimeNs, ctimeNs].join(" ");
      writeFileSync(`${path}.checked`, `${mark}\n`);
      const events: string[] = [];
      await using deployment = openEmbeddedDeployment(
        { dataDir, cacheDir, model: `${host.url}/t.gguf`, slots: 1, threads: 1 },
        {
          now: () => performance.now(),
          onProgress: () => undefined,
          onLifecycle: (event) => events.push(event),
        },
      );
      await untilReady(deployment);
      const others = events.filter((event) => event !== "model not loaded");
      expect(events[0]).toBe("model not loaded");
      expect(others).toEqual(["weights downloading", "weights fetched", "model loaded"]);
      expect(readFileSync(path).equals(weights)).toBe(true);
      expect((await answer(deployment, { outputTokensMax: 2 })).text).toBe("01");
    },
    patienceMs,
  );
});
