import { limits } from "../limits.ts";
import { invalidField } from "./read-fields.ts";

/** How much a request holds of what is limited by count. */
export interface Counted {
  /** The field of the items: `messages` or `input`. */
  readonly itemsParam: string;
  readonly itemCount: number;
  readonly tools: CountedTools;
}

/** Tools of one request, from all sources, after flattening and before hosted ones are left out. */
export interface CountedTools {
  readonly count: number;
  /** UTF-8 bytes of their JSON. */
  readonly bytes: number;
}

/** Adds up the tools of one request. */
export interface ToolCounter extends CountedTools {
  /** One source: the array as it came, and how many tools it holds after flattening. */
  add(source: readonly unknown[], toolCount: number): void;
}

/** Opens the count of one request's tools. */
export function openToolCounter(): ToolCounter {
  let count = 0;
  let bytes = 0;
  return {
    add(source, toolCount) {
      count += toolCount;
      if (source.length > 0) bytes += Buffer.byteLength(JSON.stringify(source));
    },
    get count() {
      return count;
    },
    get bytes() {
      return bytes;
    },
  };
}

/** Throws where a count is above its limit. Parsers call it last, so that a wrong field is named before a large count. */
export function ensureCountedLimits({ itemsParam, itemCount, tools }: Counted): void {
  if (itemCount > limits.inputItemsMax)
    throw invalidField(
      itemsParam,
      `has ${String(itemCount)} elements; at most ${String(limits.inputItemsMax)} are taken. Leave out or sum up older ones.`,
    );
  if (tools.count > limits.toolsMax)
    throw invalidField(
      "tools",
      `${String(tools.count)} tools were sent; at most ${String(limits.toolsMax)} are taken. Leave some out.`,
    );
  if (tools.bytes > limits.toolBytesMax)
    throw invalidField(
      "tools",
      `the tools have ${String(tools.bytes)} bytes of JSON; at most ${String(limits.toolBytesMax)} are taken. Shorten or leave out some.`,
    );
}
