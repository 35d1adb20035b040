import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openJsonObjectEnd } from "../src/json-object-end.ts";
import {
  describeTools,
  documentedSyntax,
  missingOf,
  nameEnd,
  readSyntax,
  writeCall,
} from "../src/tool-syntax.ts";

describe("the syntax of calls", () => {
  it.each([
    ['\n<tool_call>\n{"name": "', '", "arguments": ', "<tool_call>"],
    ['<call>{"name": "', '", "arguments": ', "<call>"],
    ['[TOOL_CALLS][{"name": "', '", "arguments": ', "[TOOL_CALLS]"],
    ['{"name": "', '", "parameters": ', '{"name":'],
    [">>>", "\n", null],
    ["||call: ", "(", "||call:"],
    ["call ", " with ", "call"],
    ["", '", ', null],
  ])("is read from a template that begins calls with %j", (prefix, paramsPrefix, marker) => {
    const syntax = readSyntax({ prefix, paramsPrefix });
    expect(syntax?.marker ?? null).toBe(marker);
    if (syntax !== null) expect(syntax.begin.startsWith(syntax.marker)).toBe(true);
  });

  it("completes what the model wrote behind the marker", () => {
    expect(missingOf(documentedSyntax, "")).toBe('\n{"name": "');
    expect(missingOf(documentedSyntax, "\n")).toBe('{"name": "');
    expect(missingOf(documentedSyntax, '{"')).toBe('name": "');
    expect(missingOf(documentedSyntax, '\n {"name"')).toBe(': "');
    expect(missingOf(documentedSyntax, "{'")).toBeNull();
    expect(missingOf(documentedSyntax, '\n{"name": "get')).toBeNull();
  });

  it("ends a name with what no name has", () => {
    expect(nameEnd(documentedSyntax)).toBe('"');
  });

  it("writes calls and tools as one line of JSON each", () => {
    const call = writeCall("act", '{"a":1}').split("\n");
    expect(call.at(0)).toBe("<tool_call>");
    expect(JSON.parse(call[1] ?? "")).toEqual({ name: "act", arguments: { a: 1 } });
    expect(call.at(-1)).toBe("</tool_call>");
    const text = describeTools([
      { name: "act", description: "acts\nwell", parameters: null },
      { name: "rest", description: null, parameters: { type: "object", properties: {} } },
    ]);
    const lines = text.split("\n").filter((line) => line.startsWith('{"type"'));
    expect(lines.map((line) => (JSON.parse(line) as { function: unknown }).function)).toEqual([
      { name: "act", description: "acts\nwell", parameters: { type: "object" } },
      { name: "rest", parameters: { type: "object", properties: {} } },
    ]);
  });
});

describe("the end of an object", () => {
  it("is found wherever the text is cut, whatever its strings hold", () => {
    const object = fc.dictionary(fc.string(), fc.jsonValue());
    fc.assert(
      fc.property(object, fc.array(fc.integer({ min: 1, max: 9 })), (value, lengths) => {
        const text = JSON.stringify(value);
        const end = openJsonObjectEnd();
        const all = ` ${text}} behind`;
        let start = 0;
        for (const length of [...lengths, all.length]) {
          const found = end.add(all.slice(start, start + length));
          if (found !== -1) {
            expect(start + found).toBe(1 + text.length);
            return;
          }
          start += length;
        }
        throw new Error("no end was found");
      }),
    );
  });
});
