import type { AssistantPart, Turn } from "./conversation.ts";

/**
 * The one shape of a list of turns, whichever format it came in: leading system texts become one turn, joined by a
 * blank line in order (empty ones vanish); neighbouring assistant turns become one, so that an answer written as several
 * items equals the same answer written as one message.
 */
export function joinTurns(turns: readonly Turn[]): readonly Turn[] {
  const joined: Turn[] = [];
  const leading: string[] = [];
  let index = 0;
  for (; index < turns.length; index += 1) {
    const turn = turns[index];
    if (turn === undefined || turn.role !== "system") break;
    if (turn.text !== "") leading.push(turn.text);
  }
  if (leading.length > 0) joined.push({ role: "system", text: leading.join("\n\n") });
  let parts: AssistantPart[] | null = null;
  for (const turn of turns.slice(index)) {
    if (turn.role !== "assistant") {
      parts = null;
      joined.push(turn);
    } else if (parts !== null) {
      parts.push(...turn.parts);
    } else {
      parts = [...turn.parts];
      joined.push({ role: "assistant", parts });
    }
  }
  return joined;
}
