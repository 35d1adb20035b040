import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readPageFiles } from "../../src/pages/page-files.ts";

// The files of a page as a browser gets them.

const folder = mkdtempSync(join(tmpdir(), "tributary-pages-"));
const files = readPageFiles(folder);
const server = createServer((request, response) => void files.answer(request, response));
let url = "";
beforeAll(async () => {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
});
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

function build(page: string, atMs: number): void {
  writeFileSync(join(folder, "main-x1.js"), "let a;");
  writeFileSync(join(folder, "main-x1.js.br"), brotliCompressSync("let a;"));
  writeFileSync(join(folder, "notes.txt"), "of no page");
  writeFileSync(join(folder, "index.html"), page);
  utimesSync(join(folder, "index.html"), atMs / 1_000, atMs / 1_000);
}

test("what is not built is said with its command, and is served once it is built", async () => {
  expect(await files.isBuilt()).toBe(false);
  const missing = await fetch(`${url}/`);
  expect(missing.status).toBe(503);
  expect(await missing.text()).toContain("npm run build:console");
  build("<!doctype html><p>first", 1_000_000);
  expect(await files.isBuilt()).toBe(true);
  expect(await (await fetch(`${url}/`)).text()).toContain("first");
  build("<!doctype html><p>second", 2_000_000);
  expect(await (await fetch(`${url}/`)).text()).toContain("second");
});

test("the page is asked for again each time, under a policy that runs its own files alone", async () => {
  build("<!doctype html><p>page", 3_000_000);
  const page = await fetch(`${url}/`);
  expect(page.headers.get("cache-control")).toBe("no-cache");
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  const policy = page.headers.get("content-security-policy") ?? "";
  expect(policy).toContain("default-src 'none'");
  expect(policy).toContain("require-trusted-types-for 'script'");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toMatch(/unsafe|https?:|\*/);
  expect(page.headers.get("x-content-type-options")).toBe("nosniff");
});

test("a file is kept for good and goes compressed where the browser takes that", async () => {
  build("<!doctype html>", 4_000_000);
  const packed = await fetch(`${url}/console/main-x1.js`, {
    headers: { "accept-encoding": "gzip, br" },
  });
  expect(packed.headers.get("content-encoding")).toBe("br");
  expect(packed.headers.get("cache-control")).toContain("immutable");
  expect(packed.headers.get("vary")).toBe("accept-encoding");
  expect(await packed.text()).toBe("let a;");
  const refused = { "accept-encoding": "br;q=0, gzip" };
  const plain = await fetch(`${url}/console/main-x1.js`, { headers: refused });
  expect(plain.headers.get("content-encoding")).toBeNull();
  expect(await plain.text()).toBe("let a;");
});

test.each([
  ["/console/%2e%2e/secret", 404],
  ["/console/notes.txt", 404],
  ["/console/", 404],
  ["/console/main-x1.js.br", 404],
])("%s is no file of the page", async (path, status) => {
  build("<!doctype html>", 5_000_000);
  expect((await fetch(url + path)).status).toBe(status);
});

test("only GET and HEAD are answered", async () => {
  build("<!doctype html><p>page", 6_000_000);
  expect((await fetch(`${url}/`, { method: "POST" })).status).toBe(405);
  const head = await fetch(`${url}/`, { method: "HEAD" });
  expect(head.status).toBe(200);
  expect(await head.text()).toBe("");
});
