/** Turns tokens into text without ever breaking a character; one that the end cuts off is not shown at all. */
export interface TokenText<Token> {
  /** Text that became certain with this token; empty while a character is incomplete. */
  add(token: Token): string;
}

const replacementCharacter = "\ufffd";
const recentTokensMax = 8;

/** `detokenize` gives the text of tokens that follow others; an incomplete character comes as one U+FFFD. */
export function openTokenText<Token>(
  detokenize: (tokens: readonly Token[], before: readonly Token[]) => string,
): TokenText<Token> {
  let before: Token[] = [];
  let pending: Token[] = [];
  let shown = 0;
  return {
    add(token) {
      pending.push(token);
      const text = detokenize(pending, before);
      const incomplete = text.endsWith(replacementCharacter);
      const certain = incomplete ? text.slice(0, -1) : text;
      const added = certain.slice(shown);
      shown = certain.length;
      if (!incomplete) {
        before = [...before, ...pending].slice(-recentTokensMax);
        pending = [];
        shown = 0;
      }
      return added;
    },
  };
}

/** What one piece of text gave: what may be shown, and the stop sequence that was met, if any. */
export interface StopScan {
  readonly text: string;
  readonly met: string | null;
}

/** Holds text back while it may be the beginning of a stop sequence. */
export interface StopGate {
  add(text: string): StopScan;
  /** What was held when the answer ended without the sequence. */
  flush(): string;
}

/**
 * The sequence that is complete first wins, the longer one on a tie, so that the answer does not depend on how the text
 * was cut. One automaton step a character and sequence, however long either is.
 */
export function openStopGate(stopSequences: readonly string[]): StopGate {
  const machines = stopSequences
    .filter((sequence) => sequence !== "")
    .toSorted((a, b) => b.length - a.length)
    .map((sequence) => ({ sequence, fallback: buildFallback(sequence), matched: 0 }));
  let held = "";

  return {
    add(text) {
      if (machines.length === 0) return { text, met: null };
      const all = held + text;
      for (let index = 0; index < text.length; index += 1) {
        for (const machine of machines) {
          advance(machine, text.charCodeAt(index));
          if (machine.matched < machine.sequence.length) continue;
          const end = held.length + index + 1;
          held = "";
          return { text: all.slice(0, end - machine.sequence.length), met: machine.sequence };
        }
      }
      const keep = machines.reduce((most, machine) => Math.max(most, machine.matched), 0);
      held = all.slice(all.length - keep);
      return { text: all.slice(0, all.length - keep), met: null };
    },
    flush() {
      const rest = held;
      held = "";
      return rest;
    },
  };
}

interface Machine {
  readonly sequence: string;
  readonly fallback: readonly number[];
  matched: number;
}

function advance(machine: Machine, code: number): void {
  const { sequence, fallback } = machine;
  while (machine.matched > 0 && sequence.charCodeAt(machine.matched) !== code) {
    machine.matched = fallback[machine.matched - 1] ?? 0;
  }
  if (sequence.charCodeAt(machine.matched) === code) machine.matched += 1;
}

/** Knuth, Morris and Pratt: for each prefix, the longest proper prefix that is also its suffix. */
function buildFallback(sequence: string): readonly number[] {
  const fallback = [0];
  let length = 0;
  for (let index = 1; index < sequence.length; index += 1) {
    while (length > 0 && sequence.charCodeAt(index) !== sequence.charCodeAt(length)) {
      length = fallback[length - 1] ?? 0;
    }
    if (sequence.charCodeAt(index) === sequence.charCodeAt(length)) length += 1;
    fallback.push(length);
  }
  return fallback;
}
