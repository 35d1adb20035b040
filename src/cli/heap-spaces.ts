import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { limits } from "../limits.ts";
import type { Timers } from "../timers.ts";

/** The flags of V8 that are changed while the program runs, which it reads each time that it needs them. */
export const heapFlags = ["--heap-growing-percent", "--semi-space-growth-factor"] as const;

/**
 * Keeps V8's space for young objects as small as it is until `tuneHeap`. Loading the service makes many objects that stay, for
 * which V8 lets that space grow to 20 MiB and more: what requests need is a third, and V8 seldom makes it smaller again.
 */
export function holdYoungSpace(): void {
  setYoungSpaceGrowth(false);
}

/** The same for a process from its first module on, as a flag of Node. */
export const heldYoungSpace = "--semi-space-growth-factor=1";

/** Lets both spaces of V8's heaps grow as far as suits a gateway. */
export function tuneHeap(timers: Timers): void {
  setHeapFlag("--heap-growing-percent", limits.oldSpaceGrowthPercent);
  watchYoungSpace(timers);
}

/**
 * Lets V8's space for young objects grow under load up to `limits.youngSpaceGrownBytes` and not beyond. A flag of the
 * start cannot say so from inside the program; that of growth is read each time that the space would double, so that it
 * is turned off when the space is that large, and on again when V8 has made it smaller.
 */
export function watchYoungSpace(
  timers: Timers,
  { bytes = youngSpaceBytes, setGrowth = setYoungSpaceGrowth } = {},
): void {
  let grows: boolean | null = null;
  const look = (): void => {
    const mayGrow = bytes() < limits.youngSpaceGrownBytes;
    if (mayGrow !== grows) setGrowth(mayGrow);
    grows = mayGrow;
    timers.set(look, limits.youngSpaceLookMs);
  };
  look();
}

/** How large the space for young objects of this thread is. */
function youngSpaceBytes(): number {
  const spaces = getHeapSpaceStatistics();
  return spaces.find((space) => space.space_name === "new_space")?.space_size ?? 0;
}

/** Lets it double when much of it survives, or never. Of all threads: the others have limits of their own. */
function setYoungSpaceGrowth(grows: boolean): void {
  setHeapFlag("--semi-space-growth-factor", grows ? 2 : 1);
}

function setHeapFlag(flag: (typeof heapFlags)[number], value: number): void {
  setFlagsFromString(`${flag}=${String(value)}`);
}
