import { expect, test } from "vitest";
import { limits } from "../../src/limits.ts";
import { answerText } from "../../src/operators/route.ts";

// Reports go out piece by piece: no byte may be missing or twice.

test.each([0, 1, -1, 1 + limits.reportPieceBytes])(
  "a report of two pieces and %i bytes comes whole",
  async (more) => {
    const text = Uint8Array.from(
      { length: 2 * limits.reportPieceBytes + more },
      (_, at) => at % 251,
    );
    const answer = answerText({ text }) as unknown as Response;
    expect(answer.headers.get("content-length")).toBe(String(text.byteLength));
    expect(Buffer.compare(Buffer.from(await answer.arrayBuffer()), text)).toBe(0);
  },
);
