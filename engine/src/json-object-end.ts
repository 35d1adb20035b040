/** Finds where a JSON object that comes in pieces ends; what comes is trusted to be JSON. */
export interface JsonObjectEnd {
  /** Index behind the last brace in this piece; -1 while the object goes on. */
  add(text: string): number;
}

/** Blanks before the object are passed over. */
export function openJsonObjectEnd(): JsonObjectEnd {
  let depth = 0;
  let inString = false;
  let escaped = false;
  return {
    add(text) {
      for (let index = 0; index < text.length; index += 1) {
        const character = text.charAt(index);
        if (escaped) escaped = false;
        else if (inString) {
          if (character === "\\") escaped = true;
          else if (character === '"') inString = false;
        } else if (character === '"') inString = true;
        else if (character === "{") depth += 1;
        else if (character === "}") {
          depth -= 1;
          if (depth === 0) return index + 1;
        }
      }
      return -1;
    },
  };
}
