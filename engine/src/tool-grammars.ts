import { createHash } from "node:crypto";
import type { Llama, LlamaGrammar, LlamaModel } from "node-llama-cpp";
import type { Tool } from "./conversation.ts";
import { addOneOf, anyObjectGrammar, GrammarRules, quote } from "./grammar-rules.ts";
import { buildArgumentsGrammar } from "./json-schema-grammar.ts";

/** Grammars as llama.cpp takes them; the newest are kept, as agents send the same tools with every turn. */
export interface ToolGrammars {
  /** One of the tools' names and the text that ends it. */
  names(tools: readonly Tool[], end: string): Promise<LlamaGrammar>;
  argumentsOf(tool: Tool): Promise<LlamaGrammar>;
  jsonOrMarker(marker: string): Promise<LlamaGrammar>;
}

const keptMax = 128;
const charactersKeptMax = 10_000;

/** `warn` hears of every schema that is not followed, once. */
export function openToolGrammars(
  { llama, model }: { readonly llama: Llama; readonly model: LlamaModel },
  warn: (message: string) => void,
): ToolGrammars {
  const canWrite = openVocabularyCheck(model);
  const kept = new Map<string, Promise<LlamaGrammar>>();

  function keep(key: string, make: () => Promise<LlamaGrammar>): Promise<LlamaGrammar> {
    const grammar = kept.get(key) ?? make();
    kept.delete(key);
    kept.set(key, grammar);
    const [oldest] = kept.keys();
    if (kept.size > keptMax && oldest !== undefined) kept.delete(oldest);
    return grammar;
  }

  async function makeArguments({ name, parameters }: Tool): Promise<LlamaGrammar> {
    const built = buildArgumentsGrammar(parameters);
    const tell = (reason: string): void =>
      warn(`tool ${name}: ${reason}; its arguments are any JSON object`);
    if (built.relaxed !== null) tell(built.relaxed);
    try {
      return await llama.createGrammar({ grammar: escapeUnwritable(built.grammar, canWrite) });
    } catch {
      tell("llama.cpp does not take the grammar of its schema");
      return llama.createGrammar({ grammar: anyObjectGrammar });
    }
  }

  return {
    names: (tools, end) =>
      llama.createGrammar({
        grammar: buildNamesGrammar(
          tools.map(({ name }) => name),
          end,
        ),
      }),
    argumentsOf(tool) {
      const text = JSON.stringify(tool.parameters);
      const key = createHash("sha256").update(text).digest("base64");
      return keep(key, () => makeArguments(tool));
    },
    jsonOrMarker: (marker) => llama.createGrammar({ grammar: buildJsonOrMarkerGrammar(marker) }),
  };
}

/** Whether the vocabulary has a character, or all of its bytes: some vocabularies lack bytes that were not in their training. */
function openVocabularyCheck(model: LlamaModel): (character: string) => boolean {
  const known = new Map<string, boolean>();
  return (character) => {
    let writable = known.get(character);
    if (writable === undefined) {
      const tokens = model.tokenize(character, false, "trimLeadingSpace");
      writable = model.detokenize(tokens).trim() === character;
      if (known.size < charactersKeptMax) known.set(character, writable);
    }
    return writable;
  };
}

/**
 * A grammar whose literals have JSON's escapes in place of characters that cannot be written: where nothing that the
 * vocabulary has may follow, llama.cpp fails, and every answer under way with it.
 */
export function escapeUnwritable(
  grammar: string,
  canWrite: (character: string) => boolean,
): string {
  return grammar.replaceAll(/[^\0-\x7f]/gu, (character) => {
    if (canWrite(character)) return character;
    const units = Array.from({ length: character.length }, (_, index) =>
      character.charCodeAt(index).toString(16).padStart(4, "0"),
    );
    return units.map((unit) => `\\\\u${unit}`).join("");
  });
}

/** One of the names, ended by the text that follows a name. */
export function buildNamesGrammar(names: readonly string[], end: string): string {
  const rules = new GrammarRules(Infinity);
  return rules.write(
    addOneOf(
      rules,
      names.map((name) => name + end),
    ),
  );
}

/** One JSON object, or the marker of a call. */
export function buildJsonOrMarkerGrammar(marker: string): string {
  return anyObjectGrammar.replace("root ::= ", () => `root ::= ${quote(marker)} | `);
}
