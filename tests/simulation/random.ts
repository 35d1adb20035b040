/** Numbers from a seed and a label: what one event draws does not depend on which others there are. */
export interface Draws {
  /** 0 to 1, exclusive. */
  unit(label: string): number;
  /** Whole, `from` to `to`, both inclusive. */
  between(label: string, from: number, to: number): number;
  chance(label: string, probability: number): boolean;
}

/** Draws by label. */
export function openDraws(seed: number): Draws {
  const unit = (label: string): number => hash(seed, label) / 0x1_0000_0000;
  return {
    unit,
    between: (label, from, to) => from + Math.floor(unit(label) * (to - from + 1)),
    chance: (label, probability) => unit(label) < probability,
  };
}

/** A generator that draws one number after another. */
export interface Sequence {
  between(from: number, to: number): number;
  chance(probability: number): boolean;
  pick<Value>(values: readonly Value[]): Value;
}

/** Starts a sequence. */
export function openSequence(seed: number): Sequence {
  let state = hash(seed, "plan");
  const unit = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    return mix(state) / 0x1_0000_0000;
  };
  return {
    between: (from, to) => from + Math.floor(unit() * (to - from + 1)),
    chance: (probability) => unit() < probability,
    pick(values) {
      const value = values[Math.floor(unit() * values.length)];
      if (value === undefined) throw new Error("nothing to pick from");
      return value;
    },
  };
}

function hash(seed: number, label: string): number {
  let state = (seed ^ 0x811c9dc5) >>> 0;
  for (let index = 0; index < label.length; index += 1)
    state = Math.imul(state ^ label.charCodeAt(index), 0x01000193) >>> 0;
  return mix(state);
}

function mix(value: number): number {
  let mixed = value;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
