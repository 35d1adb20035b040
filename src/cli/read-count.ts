import { misuse } from "./command.ts";

/** A whole number from 1 to `max`. */
export function readCount(text: string, option: string, max: number): number {
  const count = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (count >= 1 && count <= max) return count;
  throw misuse(`${option} ${JSON.stringify(text)} is no number from 1 to ${String(max)}.`);
}
