import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { AnswerSegments, type SegmentPiece } from "../src/answer-segments.ts";

const markers = {
  thoughtOpens: ["<think>"],
  thoughtCloses: ["</think>"],
  call: "<tool_call>",
} as const;

interface Divided {
  readonly said: readonly SegmentPiece[];
  readonly call: string | null;
}

function divide(
  pieces: readonly string[],
  { callAfterThought = false, cut = false, thinking = false, marks = markers } = {},
): Divided {
  const segments = new AnswerSegments(marks, { thinking, callAfterThought });
  const said: SegmentPiece[] = [];
  for (const [index, piece] of pieces.entries()) {
    const scan = segments.add(piece);
    said.push(...scan.pieces);
    if (scan.call !== null) return { said, call: scan.call + pieces.slice(index + 1).join("") };
  }
  said.push(...segments.flush(cut));
  return { said, call: null };
}

function join(said: readonly SegmentPiece[]): string {
  let kind = "";
  return said
    .map((piece) => {
      const head = piece.kind === kind ? "" : `${piece.kind}:`;
      kind = piece.kind;
      return head + piece.text;
    })
    .join("");
}

describe("the divider of an answer", () => {
  it.each([
    ["\n<think>\nhm, yes\n</think>\n\nSo it is.", "reasoning:hm, yestext:So it is."],
    ["<think></think>fine", "text:fine"],
    [" a text, <think>no thought</think>", "text: a text, <think>no thought</think>"],
    ["1 < 2 and </think>", "text:1 < 2 and </think>"],
    ["<think>without end ", "reasoning:without end"],
    ["only text\n", "text:only text\n"],
    ["x <tool", "text:x <tool"],
    ["", ""],
  ])("divides %j", (answer, expected) => {
    expect(join(divide([answer]).said)).toBe(expected);
    expect(join(divide(Array.from(answer)).said)).toBe(expected);
  });

  it("tells a call and what came behind its marker, without the blanks before it", () => {
    const whole = 'Let me see.\n\n<tool_call>\n{"name"';
    expect(divide([whole])).toEqual({
      said: [{ kind: "text", text: "Let me see." }],
      call: '\n{"name"',
    });
    expect(divide(Array.from("\n<tool_call>x"))).toEqual({ said: [], call: "x" });
  });

  it("looks for no call inside a thought", () => {
    const answer = "<think>a <tool_call> would help</think><tool_call>{";
    const { call, said } = divide([answer]);
    expect(join(said)).toBe("reasoning:a <tool_call> would help");
    expect(call).toBe("{");
  });

  it("begins a forced call where the thought ends", () => {
    const order = { thinking: true, callAfterThought: true };
    const { call, said } = divide(Array.from("I must call.</think> x"), order);
    expect(join(said)).toBe("reasoning:I must call.");
    expect(call).toBe(" x");
  });

  it("shows nothing of a marker that the allowance cuts", () => {
    expect(join(divide(["yes <tool_c"], { cut: true }).said)).toBe("text:yes");
    expect(join(divide(["<thi"], { cut: true }).said)).toBe("");
    expect(join(divide(["hm </thin"], { cut: true, thinking: true }).said)).toBe("reasoning:hm");
  });

  it("gives every piece as it comes where there are no markers", () => {
    const segments = new AnswerSegments(
      { thoughtOpens: [], thoughtCloses: [], call: null },
      { thinking: false, callAfterThought: false },
    );
    for (const piece of ["\n", " a", "<", "b \n"]) {
      expect(segments.add(piece)).toEqual({ pieces: [{ kind: "text", text: piece }], call: null });
    }
  });

  it("answers the same however the text is cut, and never shows a marker", () => {
    const part = fc.constantFrom("<think>", "</think>", "<tool_call>", "<", "</", "t", " ", "\n");
    fc.assert(
      fc.property(
        fc.array(part, { maxLength: 12 }),
        fc.array(fc.nat(6), { maxLength: 30 }),
        fc.boolean(),
        (parts, cuts, thinking) => {
          const whole = parts.join("");
          const pieces: string[] = [];
          let start = 0;
          for (const length of cuts) {
            pieces.push(whole.slice(start, start + length));
            start += length;
          }
          pieces.push(whole.slice(start));
          const [one, many] = [divide([whole], { thinking }), divide(pieces, { thinking })];
          expect(join(many.said)).toBe(join(one.said));
          expect(many.call).toBe(one.call);
          const texts = (kind: string): string =>
            one.said.map((piece) => (piece.kind === kind ? piece.text : "")).join("");
          expect(texts("text")).not.toContain("<tool_call>");
          expect(texts("reasoning")).not.toContain("</think>");
        },
      ),
      { numRuns: 500 },
    );
  });
});
