import type { OriginalTool, ResponsesEcho } from "./wire.ts";

/** The flat name under which the model knows a tool. */
export function joinNamespace(namespace: string | null, name: string): string {
  return namespace === null || namespace === "" ? name : `${namespace}__${name}`;
}

/**
 * Finds the tool of the request behind a flat name that the model called. Only this request's table splits names:
 * `mcp__x__y` may well be an ordinary one.
 */
export function openToolLookup(echo: ResponsesEcho): (flatName: string) => OriginalTool {
  const tools = new Map(echo.originalTools);
  return (flatName) => tools.get(flatName) ?? { name: flatName, namespace: null, custom: false };
}
