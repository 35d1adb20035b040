import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import type { CountableTexts } from "../formats/wire-format.ts";
import { limits } from "../limits.ts";

// A byte-pair merge takes time quadratic in the length of a word (39 s were seen for 200 kB of one letter), so words
// are cut; a cut can only add tokens.
const run = String(limits.tokenizerRunCharactersMax);
const longRun = new RegExp(`\\S{${run}}\\S|\\s{${run}}\\s`, "u");
const cuts = new RegExp(` ?\\S{1,${run}}|\\s{1,${run}}`, "gu");

const encoding = { disallowedSpecial: new Set<string>() };

/**
 * An estimate of the tokens in all texts together, by a public vocabulary that is not the deployed model's; errs
 * slightly high. Time is bounded: what is left then is guessed from its size. It is the thread's own time on the
 * processor, so that the same conversation has the same count on a busy machine.
 */
export function countTextTokens(countable: CountableTexts, nowMs: () => number = threadMs): number {
  const endMs = nowMs() + limits.tokenizerMs;
  let tokens = countable.overheadTokens;
  for (const text of countable.texts) tokens += countOne(text, endMs, nowMs);
  return tokens;
}

function countOne(text: string, endMs: number, nowMs: () => number): number {
  let tokens = 0;
  for (let at = 0; at < text.length; at += limits.tokenizerPieceCharacters) {
    if (nowMs() > endMs) return tokens + guess(text.slice(at));
    tokens += countPiece(text.slice(at, at + limits.tokenizerPieceCharacters));
  }
  return tokens;
}

function threadMs(): number {
  const { system, user } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

function countPiece(piece: string): number {
  if (!longRun.test(piece)) return countTokens(piece, encoding);
  let tokens = 0;
  for (const [part] of piece.matchAll(cuts)) tokens += countTokens(part, encoding);
  return tokens;
}

function guess(text: string): number {
  return Math.ceil(Buffer.byteLength(text, "utf8") / limits.tokenizerGuessBytesPerToken);
}
