import type { AssistantPart } from "../../conversation/conversation.ts";
import { type CustomToolInputDecoder, openCustomToolInputDecoder } from "../custom-tool-input.ts";
import type { AnswerContext } from "../wire-format.ts";
import type { FrameEncoder } from "./frame-encoder.ts";
import { buildEmptyItem, buildItem, buildTextPart, itemIdPrefix } from "./output-items.ts";
import type { OriginalTool, ItemStatus, OutputItem, ResponsesEcho } from "./wire.ts";

/** Encodes one item of `output` while the model writes it. Its pieces are joined once, when it ends. */
export interface ItemEncoder {
  /** Frames that begin the item. */
  start(): string;
  /** The frame of a piece; "" while a custom tool's input is not yet certain. */
  add(piece: string): string;
  /** Frames that end the content of the item, but not the item itself: whether it was cut is known only later. */
  endPart(): string;
  /** The item, whose text is complete from then on. */
  build(status: ItemStatus): OutputItem;
}

/** What an item begins with: the part without its text. */
export type ItemBeginning =
  | { readonly type: "reasoning" }
  | { readonly type: "text" }
  | {
      readonly type: "tool-call";
      readonly id: string;
      readonly name: string;
      readonly tool: OriginalTool;
    };

/** Opens an item at its place in `output`. */
export function openItemEncoder(
  beginning: ItemBeginning,
  outputIndex: number,
  { frames, context }: ItemSurroundings,
): ItemEncoder {
  const tool = beginning.type === "tool-call" ? beginning.tool : null;
  const id = context.newId(itemIdPrefix(beginning.type, tool));
  const wire = wireOf(beginning, context.echo);
  const place = `"item_id":${JSON.stringify(id)},"output_index":${String(outputIndex)},${wire.index}`;
  const encodeDelta = frames.openDelta(`${wire.text}.delta`, place, wire.extra);
  const decoder: CustomToolInputDecoder | null =
    tool?.custom === true ? openCustomToolInputDecoder() : null;
  let pieces: string[] = [];
  let whole: AssistantPart | null = null;
  let built: OutputItem | null = null;

  /** The whole part; after this nothing is added any more. */
  function end(): AssistantPart {
    if (whole === null) {
      whole = withText(beginning, pieces.join(""));
      pieces = [];
    }
    return whole;
  }

  function encodeInput(input: string): string {
    return input === "" ? "" : encodeDelta(input);
  }

  return {
    start() {
      const item = buildEmptyItem(
        buildItem(withText(beginning, ""), tool, { id, status: "in_progress", context }),
      );
      const added = frames.frame(
        "response.output_item.added",
        `"output_index":${String(outputIndex)},"item":${JSON.stringify(item)}`,
      );
      if (wire.part === null) return added;
      return added + frames.frame(`${wire.part}.added`, `${place}"part":${wire.encodePart("")}`);
    },
    add(piece) {
      pieces.push(piece);
      return decoder === null ? encodeDelta(piece) : encodeInput(decoder.push(piece));
    },
    endPart() {
      const rest = decoder === null ? "" : encodeInput(decoder.finish());
      built = buildItem(end(), tool, { id, status: "completed", context });
      const text = JSON.stringify(wholeOf(built));
      const done = frames.frame(
        `${wire.text}.done`,
        `${place}${nameOf(built)}"${wire.whole}":${text}${wire.extra}`,
      );
      if (wire.part === null) return rest + done;
      const part = frames.frame(
        `${wire.part}.done`,
        `${place}"part":${wire.encodePart(wholeOf(built))}`,
      );
      return rest + done + part;
    },
    build(status) {
      built ??= buildItem(end(), tool, { id, status, context });
      return { ...built, status };
    },
  };
}

/** What an item needs of its answer. */
export interface ItemSurroundings {
  readonly frames: FrameEncoder;
  readonly context: AnswerContext<ResponsesEcho>;
}

/** The names under which one kind of item is streamed. */
interface ItemWire {
  /** Frames `<text>.delta` and `<text>.done`. */
  readonly text: string;
  /** The field of the `.done` frame. */
  readonly whole: "text" | "arguments" | "input";
  /** Frames `<part>.added` and `<part>.done`; null for calls, which have no parts. */
  readonly part: string | null;
  readonly encodePart: (text: string) => string;
  /** JSON text of the part's index, with a trailing comma. */
  readonly index: string;
  /** JSON text of further members, with a leading comma. */
  readonly extra: string;
}

const messageWire: ItemWire = {
  text: "response.output_text",
  whole: "text",
  part: "response.content_part",
  encodePart: (text) => JSON.stringify(buildTextPart(text)),
  index: '"content_index":0,',
  extra: ',"logprobs":[]',
};

const reasoningWire: ItemWire = {
  text: "response.reasoning_text",
  whole: "text",
  // The official SDK throws on reasoning text without a part to put it in.
  part: "response.content_part",
  encodePart: (text) => JSON.stringify({ type: "reasoning_text", text }),
  index: '"content_index":0,',
  extra: "",
};

const summaryWire: ItemWire = {
  text: "response.reasoning_summary_text",
  whole: "text",
  part: "response.reasoning_summary_part",
  encodePart: (text) => JSON.stringify({ type: "summary_text", text }),
  index: '"summary_index":0,',
  extra: "",
};

const functionCallWire: ItemWire = {
  text: "response.function_call_arguments",
  whole: "arguments",
  part: null,
  encodePart: () => "",
  index: "",
  extra: "",
};

const customCallWire: ItemWire = {
  text: "response.custom_tool_call_input",
  whole: "input",
  part: null,
  encodePart: () => "",
  index: "",
  extra: "",
};

function wireOf(beginning: ItemBeginning, echo: ResponsesEcho): ItemWire {
  switch (beginning.type) {
    case "text":
      return messageWire;
    case "reasoning":
      return echo.reasoningSummary === null ? reasoningWire : summaryWire;
    case "tool-call":
      return beginning.tool.custom ? customCallWire : functionCallWire;
    default:
      return beginning satisfies never;
  }
}

function withText(beginning: ItemBeginning, text: string): AssistantPart {
  if (beginning.type !== "tool-call") return { type: beginning.type, text };
  return { type: "tool-call", id: beginning.id, name: beginning.name, arguments: text };
}

/** JSON text of the member that a function call's last frame has besides its arguments, with a trailing comma. */
function nameOf(item: OutputItem): string {
  return item.type === "function_call" ? `"name":${JSON.stringify(item.name)},` : "";
}

function wholeOf(item: OutputItem): string {
  switch (item.type) {
    case "message":
      return item.content[0]?.text ?? "";
    case "reasoning":
      return (item.content ?? item.summary)[0]?.text ?? "";
    case "function_call":
      return item.arguments;
    case "custom_tool_call":
      return item.input;
    default:
      return item satisfies never;
  }
}
