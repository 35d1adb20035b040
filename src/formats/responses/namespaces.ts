import type { CallSpelling, ResponsesEcho } from "./wire.ts";

/** The flat name under which the model knows a tool. */
export function joinNamespace(namespace: string | null, name: string): string {
  return namespace === null || namespace === "" ? name : `${namespace}__${name}`;
}

/**
 * Finds how a flat name that the model called is told to the client. Only this request's table splits names:
 * `mcp__x__y` may well be an ordinary one.
 */
export function openCallSpelling(echo: ResponsesEcho): (flatName: string) => CallSpelling {
  const spellings = new Map(echo.callSpellings);
  return (flatName) =>
    spellings.get(flatName) ?? { name: flatName, namespace: null, custom: false };
}
