import { setImmediate as nextTurn } from "node:timers/promises";

const stillTurns = 100;

/**
 * Resolves with a figure once it no longer changes. Where both ends of a connection are in this process, its bytes move
 * only in turns of its event loop: what stands still for a hundred of them waits for something else.
 */
export async function untilStill(read: () => number): Promise<number> {
  let last = read();
  for (let turns = 0; turns < stillTurns; turns += 1) {
    await nextTurn();
    const now = read();
    if (now !== last) turns = 0;
    last = now;
  }
  return last;
}
