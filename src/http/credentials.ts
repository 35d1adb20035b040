import type { IncomingHttpHeaders } from "node:http";

/** The key that a caller presents, or "" for none; formats differ in which header wins when both are sent. */
export function presentedKey(
  headers: IncomingHttpHeaders,
  preferred: "x-api-key" | "bearer",
): string {
  const apiKey = headers["x-api-key"];
  const plain = typeof apiKey === "string" ? apiKey.trim() : "";
  const bearer = /^bearer +(\S+) *$/i.exec(headers.authorization ?? "")?.[1] ?? "";
  return preferred === "x-api-key" ? plain || bearer : bearer || plain;
}
