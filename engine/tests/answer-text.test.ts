import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openStopGate, openTokenText } from "../src/answer-text.ts";

describe("the stop gate", () => {
  function run(pieces: readonly string[], stopSequences: readonly string[]) {
    const gate = openStopGate(stopSequences);
    let shown = "";
    for (const piece of pieces) {
      const scan = gate.add(piece);
      shown += scan.text;
      if (scan.met !== null) return { shown, met: scan.met };
    }
    return { shown: shown + gate.flush(), met: null };
  }

  it("shows nothing of a sequence that comes in pieces", () => {
    expect(run(["one S", "TO", "P two"], ["STOP"])).toEqual({ shown: "one ", met: "STOP" });
  });

  it("gives back what only looked like a beginning", () => {
    expect(run(["a S", "TO", "RY"], ["STOP"])).toEqual({ shown: "a STORY", met: null });
    expect(run(["a ST"], ["STOP"])).toEqual({ shown: "a ST", met: null });
  });

  it("finds a sequence that begins inside another beginning of itself", () => {
    expect(run(["aab", "aab", "aac", "x"], ["aabaac"])).toEqual({ shown: "aab", met: "aabaac" });
  });

  it("takes the sequence that is complete first, and the longer one on a tie", () => {
    expect(run(["xabcd"], ["abcd", "bc"])).toEqual({ shown: "xa", met: "bc" });
    expect(run(["xabc"], ["bc", "abc"])).toEqual({ shown: "x", met: "abc" });
  });

  it("answers the same however the text is cut, and as a plain search would", () => {
    const letters = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 40 });
    const sequence = fc.string({
      unit: fc.constantFrom("a", "b", "c"),
      minLength: 1,
      maxLength: 5,
    });
    fc.assert(
      fc.property(
        letters,
        fc.array(sequence, { maxLength: 4 }),
        fc.array(fc.nat(40), { maxLength: 8 }),
        (text, stopSequences, cuts) => {
          const places = [0, ...cuts.filter((at) => at < text.length).toSorted((a, b) => a - b)];
          const pieces = places.map((at, index) => text.slice(at, places[index + 1]));
          expect(run(pieces, stopSequences)).toEqual(search(text, stopSequences));
        },
      ),
    );
  });

  function search(text: string, stopSequences: readonly string[]) {
    for (let end = 1; end <= text.length; end += 1) {
      const met = stopSequences
        .filter((sequence) => text.slice(0, end).endsWith(sequence))
        .toSorted((a, b) => b.length - a.length)[0];
      if (met !== undefined) return { shown: text.slice(0, end - met.length), met };
    }
    return { shown: text, met: null };
  }
});

describe("text of tokens", () => {
  const decoder = new TextDecoder();
  /** Tokens are runs of bytes here. */
  const detokenize = (tokens: readonly Uint8Array[]): string =>
    decoder.decode(Buffer.concat(tokens));

  it("never breaks a character, wherever tokens end", () => {
    const text = "naïve 汉字 🙂‍↔️ €uro";
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 40 }), (sizes) => {
        const bytes = Buffer.from(text);
        const reader = openTokenText<Uint8Array>(detokenize);
        let at = 0;
        let shown = "";
        for (const size of sizes) {
          if (at >= bytes.length) break;
          shown += reader.add(bytes.subarray(at, at + size));
          expect(shown).not.toContain("\ufffd");
          expect(text.startsWith(shown)).toBe(true);
          at += size;
        }
        expect(shown).toBe(text);
      }),
    );
  });

  it("shows what is no character as a replacement, once it is certain", () => {
    const reader = openTokenText<Uint8Array>(detokenize);
    expect(reader.add(Buffer.from([0x41, 0xff]))).toBe("A");
    expect(reader.add(Buffer.from("B"))).toBe("\ufffdB");
  });

  it("does not show a character that the end cuts off", () => {
    const reader = openTokenText<Uint8Array>(detokenize);
    expect(reader.add(Buffer.from([0x41, 0xe2]))).toBe("A");
    expect(reader.add(Buffer.from([0x82]))).toBe("");
  });
});
