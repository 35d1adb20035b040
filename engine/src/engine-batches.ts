import type { BatchItem, PrioritizedBatchItem } from "node-llama-cpp";

/** The evaluation priority of a generation whose evaluations share no batch. */
export const alonePriority = 5;
/** That of all others. */
export const sharingPriority = 1;

/**
 * How often in a row a batch is put off, which takes a few microtasks each time. Most have their next token in the queue
 * within six; a generation that takes longer waits for something else, such as a grammar, and must not hold up the others.
 */
const waitsMax = 24;

interface BatchOrder {
  readonly items: readonly BatchItem[];
  readonly size: number;
}

/** What picking batches needs to know, and to tell. */
export interface BatchParts {
  /** How many generations share batches and are about to ask for their next evaluation, or asked. */
  readonly countSharing: () => number;
  /** Called before each batch. */
  readonly onBatch: (batch: { readonly alone: boolean; readonly tokens: number }) => void;
}

/** Picks what is evaluated together. */
export type PickBatch = (order: BatchOrder) => PrioritizedBatchItem[];

/**
 * Rounding differs with what shares a batch, so that a generation that must be repeatable is evaluated alone; the others
 * share. Queue order keeps it fair: each sequence has one item in the queue at a time.
 *
 * The library would begin the next batch in the very turn in which the last one of the batch before gets its token, so
 * that this one was never among them: of four streams three went together, of two one. So a batch waits for all who are
 * about to come.
 */
export function openBatches({ countSharing, onBatch }: BatchParts): PickBatch {
  let waits = 0;
  return ({ items, size }) => {
    const [first] = items;
    if (first === undefined) return [];
    if (first.evaluationPriority === alonePriority) {
      const processAmount = Math.min(size, first.tokens.length);
      onBatch({ alone: true, tokens: processAmount });
      return [{ item: first, processAmount }];
    }
    const sharing = items.filter((item) => item.evaluationPriority !== alonePriority);
    if (sharing.length < countSharing() && waits < waitsMax) {
      waits += 1;
      return [];
    }
    waits = 0;
    const picked = fill(sharing, size);
    onBatch({
      alone: false,
      tokens: picked.reduce((sum, { processAmount }) => sum + processAmount, 0),
    });
    return picked;
  };
}

function fill(items: readonly BatchItem[], size: number): PrioritizedBatchItem[] {
  const picked: PrioritizedBatchItem[] = [];
  let left = size;
  for (const item of items) {
    const processAmount = Math.min(left, item.tokens.length);
    if (processAmount === 0) break;
    picked.push({ item, processAmount });
    left -= processAmount;
  }
  return picked;
}
