import { readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { expect, test } from "vitest";
import { findImportProblems, importsOf } from "./import-rules.ts";

const sources = join(import.meta.dirname, "../../src");
const files = readdirSync(sources, { recursive: true, encoding: "utf8" }).filter((file) =>
  file.endsWith(".ts"),
);

test("every source file keeps to the import table", () => {
  expect(files).toContain("failure.ts");
  const problems = files.flatMap((file) =>
    findImportProblems(file, readFileSync(join(sources, file), "utf8")),
  );
  expect(problems).toEqual([]);
});

test("no source file is there for tests alone: the command or a thread loads it", () => {
  const loaded = new Set<string>();
  const toRead = [
    "cli/main.ts",
    "cli/serving-process.ts",
    "cli/verify-thread.ts",
    "http/body-thread-entry.ts",
    "ledger/postgres/report-thread.ts",
    "ledger/sqlite/worker.ts",
  ];
  for (let file = toRead.pop(); file !== undefined; file = toRead.pop()) {
    if (loaded.has(file)) continue;
    loaded.add(file);
    const folder = posix.dirname(file);
    const imports = importsOf(readFileSync(join(sources, file), "utf8"));
    toRead.push(...imports.filter((to) => to.startsWith(".")).map((to) => posix.join(folder, to)));
  }
  expect(files.filter((file) => !loaded.has(file))).toEqual([]);
});

// Each row is a violation planted in a file that would otherwise be fine.
test.each([
  ["formats/messages/request.ts", 'import { x } from "../responses/wire.ts";'],
  ["formats/messages/request.ts", 'import type { X } from "../../deployment/deployment.ts";'],
  ["formats/wire-format.ts", 'import { x } from "./messages/format.ts";'],
  [
    "deployment/embedded/embedded-deployment.ts",
    'import { x } from "../openai-compatible/answer-reader.ts";',
  ],
  ["deployment/deployment.ts", 'import { x } from "../formats/wire-format.ts";'],
  ["deployment/deployment.ts", 'export { x } from "../ledger/ledger.ts";'],
  ["http/server.ts", 'import { x } from "../ledger/sqlite/store.ts";'],
  ["http/server.ts", 'import { x } from "../formats/messages/format.ts";'],
  ["http/server.ts", 'const x = await import("../config/config.ts");'],
  ["http/server.ts", 'import "../gateway.ts";'],
  ["gateway.ts", 'import { x } from "./cli/serve.ts";'],
  ["generation/meter.ts", 'import {\n  x,\n  y,\n} from "../seal/reasoning-seal.ts";'],
  ["ledger/ledger.ts", 'import { x } from "../generation/meter.ts";'],
  ["admission/price.ts", 'import { readFileSync } from "node:fs";'],
  ["conversation/conversation.ts", 'import { x } from "../sse/server-sent-event.ts";'],
  ["conversation/conversation.ts", 'import { createHash } from "node:crypto";'],
  ["http/server.ts", 'import Ajv from "ajv";'],
  ["sse/server-sent-event.ts", 'import { Buffer } from "node:buffer";'],
  ["seal/reasoning-seal.ts", 'import { readFileSync } from "node:fs";'],
  ["failure.ts", 'import { x } from "./limits.ts";'],
  ["telemetry/log.ts", 'import { x } from "../config/config.ts";'],
  ["deployment/openai-compatible/answer-reader.ts", 'import { getLlama } from "node-llama-cpp";'],
  ["http/server.ts", 'import { Client } from "undici";'],
  ["deployment/deployment.ts", 'import { countTokens } from "gpt-tokenizer/encoding/o200k_base";'],
  ["config/config.ts", "const port = process.env.PORT;"],
  ["cli/serve.ts", 'const port = process["env"].PORT;'],
  ["cli/serve.ts", 'import { env } from "node:process";'],
  ["cli/serve.ts", 'import { x } from "../../tests/doubles/x.ts";'],
  ["formats/messages/stream.ts", 'import { z } from "zod";'],
  ["http/server.ts", 'import { z } from "zod/mini";'],
  ["http/server.ts", 'import type { X } from "@ai-sdk/openai";'],
  ["manager/thing.ts", ""],
])("%s may not contain %s", (file, source) => {
  expect(findImportProblems(file, source)).toHaveLength(1);
});

test.each([
  ["http/body-worker.ts", 'import { x } from "../formats/messages/format.ts";'],
  ["http/body-worker.ts", 'import { x } from "../seal/reasoning-seal.ts";'],
  ["formats/formats.ts", 'import { x } from "./messages/format.ts";'],
  ["formats/messages/stream.ts", 'import { x } from "./wire.ts";'],
  ["gateway.ts", 'import { x } from "./ledger/sqlite/sqlite-ledger.ts";'],
  ["ledger/sqlite/store.ts", 'import { DatabaseSync } from "node:sqlite";'],
  ["config/environment.ts", "const port = process.env.PORT;"],
  ["generation/meter.ts", 'import { limits } from "../limits.ts";'],
])("%s may contain %s", (file, source) => {
  expect(findImportProblems(file, source)).toEqual([]);
});
