import { readFile } from "node:fs/promises";
import { answerBytes } from "./answer.ts";
import type { Exchange } from "./exchange.ts";

let reading: Promise<Uint8Array> | null = null;

/** The OpenAPI document of what callers reach, which `npm run openapi` writes. Public. */
export async function handleDocument(exchange: Exchange): Promise<void> {
  const bytes = await (reading ??= readFile(new URL("openapi.json", import.meta.url)));
  const headers = { "content-type": "application/json; charset=utf-8" };
  answerBytes(exchange, { status: 200, headers }, bytes);
}
