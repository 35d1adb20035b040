import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { fillLedger } from "./fill-ledger.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The folder of a ledger with much in it, for `startConsole`, which copies it. */
    readonly muchLedger: string;
  }
}

/** A house after a month: `team 1` to `team 50` have entries of each request, `many 0` to `many 249` a checkpoint. */
const much = { accounts: 300, keys: 1_000, receipts: 200_000 };

/** Before the lane's files: they are made once, which takes some seconds. Returns what removes them. */
export async function setup(project: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), "tributary-much-"));
  await fillLedger(join(folder, "ledger.sqlite"), much);
  project.provide("muchLedger", folder);
  return () => rmSync(folder, { recursive: true, force: true });
}
