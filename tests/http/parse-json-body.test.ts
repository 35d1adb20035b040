import { describe, expect, it } from "vitest";
import { Failure } from "../../src/failure.ts";
import { parseJsonBody } from "../../src/http/parse-json-body.ts";
import { limits } from "../../src/limits.ts";

const bytesOf = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);

function refusal(bytes: Uint8Array<ArrayBuffer>): string {
  try {
    parseJsonBody(bytes);
  } catch (error) {
    if (error instanceof Failure) return `${error.code}: ${error.message}`;
    throw error;
  }
  return "accepted";
}

/** The body is level 1. */
function nested(levels: number): string {
  return `{"a":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;
}

describe("a body", () => {
  it("may be nested as deep as the limit and no deeper", () => {
    expect(refusal(bytesOf(nested(limits.bodyNestingMax)))).toBe("accepted");
    expect(refusal(bytesOf(nested(limits.bodyNestingMax + 1)))).toMatch(/^invalid_request: .*64/);
  });

  it("of brackets is refused without exhausting the stack", () => {
    const half = limits.bodyValuesMax - 1;
    expect(refusal(bytesOf(`{"a":${"[".repeat(half)}${"]".repeat(half)}}`))).toMatch(/nested/);
    expect(refusal(bytesOf("[".repeat(half)))).toMatch(/not valid JSON/);
    expect(refusal(bytesOf("[".repeat(limits.bodyBytesMax)))).toMatch(/more than 262144 values/);
  });

  it("has as many values as the limit and no more; texts may hold what they want", () => {
    const list = (entries: number): string => `{"a":[${"0,".repeat(entries - 1)}0]}`;
    // The object, the list, and what stands behind each comma.
    expect(refusal(bytesOf(list(limits.bodyValuesMax - 1)))).toBe("accepted");
    expect(refusal(bytesOf(list(limits.bodyValuesMax)))).toMatch(/^invalid_request: .*262144/);
    expect(refusal(bytesOf(`{"a":[${"{},".repeat(limits.bodyValuesMax / 2)}0]}`))).toMatch(
      /more than 262144 values/,
    );
    const text = String.raw`{[,\",\\,`.repeat(100_000);
    expect(refusal(bytesOf(`{"a":"${text}"}`))).toBe("accepted");
  });

  it("that is not UTF-8, not JSON, empty or not an object is refused", () => {
    expect(refusal(new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x7d]))).toMatch(/UTF-8/);
    expect(refusal(bytesOf('{"a": }'))).toMatch(/not valid JSON/);
    expect(refusal(bytesOf(" "))).toMatch(/empty/);
    for (const body of ["[]", "null", '"text"', "1"])
      expect(refusal(bytesOf(body))).toMatch(/must be a JSON object/);
  });

  it("never quotes itself in the error", () => {
    expect(refusal(bytesOf('{"messages": "my secret prompt" oops'))).not.toMatch(/secret|oops/);
  });

  it("may begin with a byte order mark; the last of duplicate keys counts; __proto__ stays data", () => {
    expect(parseJsonBody(bytesOf('\uFEFF{"a":1,"a":2}'))).toEqual({ a: 2 });
    const body = parseJsonBody(bytesOf('{"__proto__":{"polluted":true}}'));
    expect(Object.getPrototypeOf(body)).toBe(Object.prototype);
    expect(Object.keys(body)).toEqual(["__proto__"]);
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });
});
