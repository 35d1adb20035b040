/** Collects the rules of one GBNF grammar. */
export interface GrammarRules {
  /** Adds a rule under a new name, which is returned. */
  add(stem: string, body: string): string;
  /** A name that `define` fills in later. */
  reserve(stem: string): string;
  define(name: string, body: string): void;
  /** The whole grammar. */
  write(root: string): string;
}

/** Thrown when a grammar grows beyond its bound. */
export class GrammarTooLarge extends Error {
  override readonly name = "GrammarTooLarge";
}

const numberRule = String.raw`"-"? ( digits ( "." [0-9]{1,24} )? | [0-9] ( "." [0-9]{1,24} )? [eE] exponent )`;

/**
 * What every grammar of ours may use. A single blank is allowed where JSON allows blanks, so that a weak model cannot
 * write blanks without end; digits and exponents stop before a number could become infinite.
 */
const sharedRules = String.raw`
ws ::= " "?
hex ::= [0-9a-fA-F]
unicode ::= [0-9a-cA-CeEfF] hex{3} | [dD] [0-7] hex{2} | [dD] [89abAB] hex{2} "\\u" [dD] [c-fC-F] hex{2}
char ::= [^"\\\x00-\x1F] | "\\" ( ["\\/bfnrt] | "u" unicode )
string ::= "\"" char* "\""
digits ::= "0" | [1-9] [0-9]{0,20}
exponent ::= "+"? "0"? ( [0-9] | [1-9] [0-9] | [12] [0-9]{2} | "30" [0-7] ) | "-" [0-3]? [0-9]{1,2}
number ::= ${numberRule}
integer ::= "-"? digits
boolean ::= "true" | "false"
null ::= "null"
value ::= string | number | boolean | null | any-object | any-array
any-object ::= "{" ws ( "}" | any-member any-members )
any-member ::= string ":" ws value
any-members ::= ws "}" | "," ws any-member any-members
any-array ::= "[" ws ( "]" | value any-values )
any-values ::= ws "]" | "," ws value any-values
`;

/** The grammar of any JSON object, for what no schema describes. */
export const anyObjectGrammar = `root ::= ws any-object\n${sharedRules.trimStart()}`;

/** Collects rules up to a number of characters; throws GrammarTooLarge beyond it. */
export function openGrammarRules(charactersMax: number): GrammarRules {
  const bodies = new Map<string, string>();
  let characters = 0;

  function define(name: string, body: string): void {
    characters += name.length + body.length;
    if (characters > charactersMax) throw new GrammarTooLarge();
    bodies.set(name, body);
  }
  function reserve(stem: string): string {
    const name = `${stem}-${bodies.size + 1}`;
    characters += name.length;
    bodies.set(name, "value");
    return name;
  }

  return {
    add(stem, body) {
      const name = reserve(stem);
      define(name, body);
      return name;
    },
    reserve,
    define,
    write(root) {
      const lines = [`root ::= ${root}`, sharedRules.trim()];
      for (const [name, body] of bodies) lines.push(`${name} ::= ${body}`);
      return `${lines.join("\n")}\n`;
    },
  };
}

/** A text as GBNF writes it. */
export function quote(text: string): string {
  const escaped = text
    .replaceAll("\\", "\\\\")
    .replaceAll('"', '\\"')
    .replaceAll("\n", "\\n")
    .replaceAll("\r", "\\r")
    .replaceAll("\t", "\\t");
  return `"${escaped}"`;
}

interface TrieNode {
  readonly children: Map<string, TrieNode>;
  end: boolean;
}

function buildTrie(words: Iterable<readonly string[]>): TrieNode {
  const root: TrieNode = { children: new Map(), end: false };
  for (const word of words) {
    let node = root;
    for (const unit of word) {
      let child = node.children.get(unit);
      if (child === undefined) {
        child = { children: new Map(), end: false };
        node.children.set(unit, child);
      }
      node = child;
    }
    node.end = true;
  }
  return root;
}

/**
 * One of the words. Words share their beginnings, as llama.cpp follows every alternative at once and looks through its
 * whole vocabulary for each.
 */
export function addOneOf(rules: GrammarRules, words: readonly string[]): string {
  if (words.length === 1) return quote(words[0] ?? "");
  const write = (node: TrieNode): string => {
    const alternatives = [...node.children].map(([unit, child]) => {
      let [text, end] = [unit, child];
      while (end.children.size === 1 && !end.end) {
        for (const [next, grandchild] of end.children) [text, end] = [text + next, grandchild];
      }
      return end.children.size === 0 ? quote(text) : `${quote(text)} ${write(end)}`;
    });
    if (node.end) alternatives.push('""');
    return rules.add("of", alternatives.join(" | "));
  };
  return write(buildTrie(words.map((word) => Array.from(word))));
}

const escapable = '"\\bfnrt';

/** The rest of a JSON string after its first quotation mark, whatever it is but one of the names. */
export function addOtherKey(rules: GrammarRules, names: readonly string[]): string {
  const any = `( [^"\\\\\\x00-\\x1F] | "\\\\" ["\\\\bfnrt] )*`;
  const write = (node: TrieNode): string => {
    const plain: string[] = [];
    const escapes = new Set(escapable);
    const alternatives = [...node.children].map(([unit, child]) => {
      if (unit.startsWith("\\")) escapes.delete(unit.slice(1));
      else plain.push(escapeClass(unit));
      return `${quote(unit)} ${write(child)}`;
    });
    alternatives.push(`[^"\\\\\\x00-\\x1F${plain.join("")}] ${any} "\\""`);
    const left = [...escapes].map(escapeClass).join("");
    if (left !== "") alternatives.push(`"\\\\" [${left}] ${any} "\\""`);
    if (!node.end) alternatives.push('"\\""');
    return rules.add("other", alternatives.join(" | "));
  };
  return write(buildTrie(names.map(splitKey)));
}

/** The pieces in which JSON writes a key: characters and escapes. */
function splitKey(name: string): readonly string[] {
  return (
    JSON.stringify(name)
      .slice(1, -1)
      .match(/\\u.{4}|\\.|[^\\]/gsu) ?? []
  );
}

function escapeClass(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase();
  return `\\U${code.padStart(8, "0")}`;
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
  const rules = openGrammarRules(Infinity);
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
