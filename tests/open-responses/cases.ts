import type { JsonRecord } from "../cases/files.ts";
import { textAnswer, type Step } from "../doubles/scripted-deployment.ts";

/** What the service does in a case: answers, or refuses with the field at fault. */
export type Outcome = "passes" | { readonly refusedFor: string };

/** One case of the compliance suite of Open Responses, in our own words. */
export interface ComplianceCase {
  /** As that suite calls it. */
  readonly id: string;
  readonly what: string;
  readonly outcome: Outcome;
  readonly stream: boolean;
  /** The requests, one after the other; each may use what the answers before it were. */
  readonly requests: readonly ((earlier: readonly Earlier[]) => JsonRecord)[];
  /** What the deployment answers, in order. */
  readonly answers: readonly (readonly Step[])[];
  /** Types of the last answer's items, where it passes. */
  readonly output: readonly string[];
}

/** An answer that a later request refers to. */
export interface Earlier {
  readonly id: string;
  readonly output: readonly { readonly type: string; readonly call_id?: string }[];
}

const usage = { promptTokens: 30, completionTokens: 12, cachedTokens: 8, reasoningTokens: 4 };
const says = (text: string): readonly Step[] => textAnswer(text, { usage, pieceCharacters: 4 });
const message = (role: string, content: unknown): JsonRecord => ({
  type: "message",
  role,
  content,
});

const tide = {
  type: "function",
  name: "tide_at",
  description: "Tells how high the sea stands at a harbour",
  parameters: {
    type: "object",
    properties: { harbour: { type: "string", description: "Name of the harbour" } },
    required: ["harbour"],
  },
};
const callsTide = textAnswer("", {
  usage,
  toolCalls: [{ id: "call_tide", name: "tide_at", arguments: '{"harbour":"Husum"}' }],
  pieceCharacters: 6,
});
const tideRequest: JsonRecord = {
  input: [message("user", "How high is the water at Husum?")],
  tools: [tide],
};
const dataUrl = (type: string): string => `data:${type};base64,R0lGODlhAQABAAAAACw=`;

const usual = { outcome: "passes", stream: false, output: ["message"] } as const;

/** Every case of that suite, in all of its published versions. */
export const complianceCases: readonly ComplianceCase[] = [
  {
    ...usual,
    id: "basic-response",
    what: "a message of the user is answered",
    requests: [() => ({ input: [message("user", "Greet in three words.")] })],
    answers: [says("Good morning, friend.")],
  },
  {
    ...usual,
    id: "streaming-response",
    what: "the same, streamed",
    stream: true,
    requests: [() => ({ input: [message("user", "Name five rivers.")] })],
    answers: [says("Elbe, Weser, Ems, Eider, Oder.")],
  },
  {
    ...usual,
    id: "system-prompt",
    what: "a system message before the user's",
    requests: [
      () => ({ input: [message("system", "You speak as sailors do."), message("user", "Hello.")] }),
    ],
    answers: [says("Ahoy!")],
  },
  {
    ...usual,
    id: "tool-calling",
    what: "a function is offered, and called",
    requests: [() => tideRequest],
    answers: [callsTide],
    output: ["function_call"],
  },
  {
    ...usual,
    id: "tool-calling-streaming",
    what: "the same, streamed",
    stream: true,
    requests: [() => tideRequest],
    answers: [callsTide],
    output: ["function_call"],
  },
  {
    ...usual,
    id: "function-call-roundtrip",
    what: "the call's output is sent with `previous_response_id`",
    outcome: { refusedFor: "previous_response_id" },
    requests: [
      () => ({ ...tideRequest, tool_choice: { type: "function", name: "tide_at" } }),
      ([first]) => ({
        previous_response_id: first?.id,
        input: [{ type: "function_call_output", call_id: callIdOf(first), output: "2.1 m" }],
      }),
    ],
    answers: [callsTide],
  },
  {
    ...usual,
    id: "multi-turn",
    what: "earlier turns are sent as items",
    requests: [
      () => ({
        input: [
          message("user", "My boat is called Lotte."),
          message("assistant", "A fine name."),
          message("user", "What is my boat called?"),
        ],
      }),
    ],
    answers: [says("Lotte.")],
  },
  {
    ...usual,
    id: "image-input",
    what: "an image in the user's message",
    outcome: { refusedFor: "input[0].content[1]" },
    requests: [
      () => ({
        input: [
          message("user", [
            { type: "input_text", text: "What is this?" },
            { type: "input_image", image_url: dataUrl("image/gif") },
          ]),
        ],
      }),
    ],
    answers: [],
  },
  {
    ...usual,
    id: "file-input",
    what: "a file in the user's message",
    outcome: { refusedFor: "input[0].content[1]" },
    requests: [
      () => ({
        input: [
          message("user", [
            { type: "input_text", text: "What is its title?" },
            {
              type: "input_file",
              filename: "chart.pdf",
              file_data: dataUrl("application/pdf"),
            },
          ]),
        ],
      }),
    ],
    answers: [],
  },
  {
    ...usual,
    id: "previous-response-id",
    what: "an earlier answer is referred to by its id",
    outcome: { refusedFor: "previous_response_id" },
    requests: [
      () => ({ input: "Remember the word heron." }),
      ([first]) => ({ previous_response_id: first?.id, input: "Which word was it?" }),
    ],
    answers: [says("I shall.")],
  },
  {
    ...usual,
    id: "file-search",
    what: "a search in stored files is forced (optional there)",
    outcome: { refusedFor: "tool_choice" },
    requests: [
      () => ({
        input: "What do the files say?",
        tools: [{ type: "file_search", vector_store_ids: ["vs_1"] }],
        tool_choice: { type: "file_search" },
        include: ["file_search_call.results"],
      }),
    ],
    answers: [],
  },
  {
    ...usual,
    id: "offline-web-search",
    what: "a search without the live web is forced (optional there)",
    outcome: { refusedFor: "tool_choice" },
    requests: [
      () => ({
        input: "What is known of this?",
        tools: [{ type: "web_search", external_web_access: false }],
        tool_choice: { type: "web_search" },
        include: ["web_search_call.action.sources"],
      }),
    ],
    answers: [],
  },
];

function callIdOf(earlier: Earlier | undefined): string {
  const call = earlier?.output.find(({ type }) => type === "function_call");
  if (call?.call_id === undefined) throw new Error("the first answer holds no call");
  return call.call_id;
}
