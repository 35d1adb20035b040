/** Thrown when a grammar grows beyond its bound. */
export class GrammarTooLarge extends Error {
  override readonly name = "GrammarTooLarge";
}

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
number ::= "-"? ( digits ( "." [0-9]{1,24} )? | [0-9] ( "." [0-9]{1,24} )? [eE] exponent )
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

/** Collects the rules of one grammar, up to a number of characters; throws GrammarTooLarge beyond it. */
export class GrammarRules {
  readonly #bodies = new Map<string, string>();
  #charactersLeft: number;

  constructor(charactersMax: number) {
    this.#charactersLeft = charactersMax;
  }

  /** A name that `define` fills in later. */
  reserve(stem: string): string {
    const name = `${stem}-${String(this.#bodies.size + 1)}`;
    this.define(name, "value");
    return name;
  }

  define(name: string, body: string): void {
    this.#charactersLeft -= name.length + body.length;
    if (this.#charactersLeft < 0) throw new GrammarTooLarge();
    this.#bodies.set(name, body);
  }

  /** Adds a rule under a new name, which is returned. */
  add(stem: string, body: string): string {
    const name = this.reserve(stem);
    this.define(name, body);
    return name;
  }

  /** The whole grammar. */
  write(root: string): string {
    const lines = [...this.#bodies].map(([name, body]) => `${name} ::= ${body}`);
    return [`root ::= ${root}`, sharedRules.trim(), ...lines, ""].join("\n");
  }
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

/**
 * One of the words. Words share their beginnings, as llama.cpp follows every alternative at once and looks through its
 * whole vocabulary for each.
 */
export function addOneOf(rules: GrammarRules, words: readonly string[]): string {
  const groups = Map.groupBy(words, (word) => /^./su.exec(word)?.[0] ?? "");
  const alternatives = [...groups].map(([first, group]) => {
    if (group.length === 1) return quote(group[0] ?? "");
    const rests = group.map((word) => word.slice(first.length));
    return `${quote(first)} ${addOneOf(rules, rests)}`;
  });
  return alternatives.length === 1
    ? (alternatives[0] ?? "")
    : rules.add("of", alternatives.join(" | "));
}
