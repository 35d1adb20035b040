import type { Tool } from "./conversation.ts";

/**
 * How calls are written around name and arguments: `begin`, the name, `between`, the arguments as one JSON object.
 * `marker` is the beginning of `begin` by which a call is known. What follows the arguments is never written.
 */
export interface ToolSyntax {
  readonly marker: string;
  readonly begin: string;
  readonly between: string;
}

/** The way in which many models learned it, for those whose template has none. */
export const documentedSyntax: ToolSyntax = {
  marker: "<tool_call>",
  begin: '<tool_call>\n{"name": "',
  between: '", "arguments":',
};

/** What a call looks like in a template: the texts around its name and around its arguments. */
export interface CallTexts {
  readonly prefix: string;
  readonly paramsPrefix: string;
}

const nameCharacter = /[A-Za-z0-9_.-]/u;

/** The syntax of a template; null where its calls cannot be known by a marker or where a name does not end. */
export function readSyntax({ paramsPrefix, prefix }: CallTexts): ToolSyntax | null {
  const begin = prefix.trimStart();
  const between = paramsPrefix.trimEnd();
  const [marker] = /^(?:<[^\s<>]+>|\[[^\s[\]]+\]|\S+)/u.exec(begin) ?? [""];
  const usable = marker.length >= 3 && between !== "" && !nameCharacter.test(between.charAt(0));
  return usable ? { marker, begin, between } : null;
}

/** The character that ends a name. */
export function nameEnd({ between }: ToolSyntax): string {
  return between.charAt(0);
}

/**
 * What is missing of `begin` after the marker and what the model wrote right after it, blanks aside; null when it wrote
 * something else.
 */
export function missingOf({ begin, marker }: ToolSyntax, written: string): string | null {
  const expected = begin.slice(marker.length);
  let at = 0;
  for (const character of written) {
    if (character.trim() === "") continue;
    while (expected.charAt(at).trim() === "" && at < expected.length) at += 1;
    if (expected.charAt(at) !== character) return null;
    at += 1;
  }
  if (written === "" || at > 0) return expected.slice(at);
  return expected.trimStart();
}

/** The system text for a model whose template knows no tools. */
export function describeTools(tools: readonly Tool[]): string {
  const lines = tools.map(({ description, name, parameters }) =>
    JSON.stringify({
      type: "function",
      function: {
        name,
        ...(description === null ? {} : { description }),
        parameters: parameters ?? { type: "object" },
      },
    }),
  );
  return [
    "You may call one of these functions to help with the user's request:",
    "<tools>",
    ...lines,
    "</tools>",
    "To call a function, write this and nothing after it:",
    "<tool_call>",
    '{"name": "the function", "arguments": {its arguments}}',
    "</tool_call>",
    "Its result comes in <tool_response></tool_response>.",
  ].join("\n");
}

/** A call of an earlier turn, as the documented syntax writes it. */
export function writeCall(name: string, argumentsText: string): string {
  const { begin, between } = documentedSyntax;
  return `${begin}${name}${between} ${argumentsText}}\n</tool_call>`;
}

/** The result of a call of an earlier turn. */
export function writeResult(text: string): string {
  return `<tool_response>\n${text}\n</tool_response>`;
}
