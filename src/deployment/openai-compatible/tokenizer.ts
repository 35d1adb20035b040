import { limits } from "../../limits.ts";
import type { Prompt } from "../deployment.ts";
import type { TokenizerName } from "./dialect.ts";

/** Posts a body, in parts, to one of an engine's own routes; `text` is the body of its answer. */
export type PostToEngine = (
  path: string,
  body: readonly Uint8Array[],
) => Promise<{ readonly status: number; readonly text: string }>;

/** What is counted, and where the engine keeps its own routes. */
export interface TokenCountQuestion {
  readonly tokenizer: TokenizerName;
  readonly prompt: Prompt;
  readonly model: string;
  readonly enginePath: string;
}

/** The tokens of a prompt as the engine itself counts them, template and tools included; null: it does not say. */
export async function askForTokenCount(
  { enginePath, model, prompt, tokenizer }: TokenCountQuestion,
  post: PostToEngine,
): Promise<number | null> {
  if (prompt.bytes.byteLength > limits.countTokensAskBytesMax) return null;
  const asked = [prompt.bytes, Buffer.from(`,"model":${JSON.stringify(model)}}`)];
  const tokenize = `${enginePath}/tokenize`;
  switch (tokenizer) {
    case "vllm": {
      // vLLM takes the body of a chat request, and answers the number before the list of tokens.
      const { status, text } = await post(tokenize, asked);
      const count = status === 200 ? /"count":\s*(\d{1,9})\b/u.exec(text)?.[1] : undefined;
      return count === undefined ? null : Number(count);
    }
    case "llama-cpp": {
      const written = await post(`${enginePath}/apply-template`, asked);
      const content = written.status === 200 ? textOfPrompt(written.text) : null;
      if (content === null) return null;
      const body = { content, add_special: true, parse_special: true };
      const { status, text } = await post(tokenize, [Buffer.from(JSON.stringify(body))]);
      return status === 200 ? countListed(text) : null;
    }
    default:
      return tokenizer satisfies never;
  }
}

function textOfPrompt(json: string): string | null {
  try {
    const answer: unknown = JSON.parse(json);
    const prompt = typeof answer === "object" && answer !== null && "prompt" in answer;
    return prompt && typeof answer.prompt === "string" ? answer.prompt : null;
  } catch {
    return null;
  }
}

/** The length of `{"tokens":[1,2,3]}`, which is not parsed: a list of numbers is long and only its commas count. */
function countListed(json: string): number | null {
  const list = /^\s*\{\s*"tokens"\s*:\s*\[([\d\s,]*)\]/u.exec(json)?.[1];
  if (list === undefined) return null;
  let count = list.trim() === "" ? 0 : 1;
  for (let at = list.indexOf(","); at !== -1; at = list.indexOf(",", at + 1)) count += 1;
  return count;
}
