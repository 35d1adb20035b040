import { it } from "vitest";

/** What an engine may be unable to do; each is the name of a law, or of a part of one. */
export type Law =
  | "brokenArguments"
  | "context"
  | "exactCounts"
  | "forcedCalls"
  | "forcedCallsByName"
  | "model";

/** What an engine cannot do, and why; the tests of it are skipped and say so. */
export type Cannot = Readonly<Partial<Record<Law, string>>>;

/** How a law is tested: `because` ends its title. */
export interface Lawful {
  readonly test: typeof it.skip;
  readonly because: string;
}

/** How each law is tested on one engine. */
export type Laws = (law: Law) => Lawful;

/** Gives the function that registers tests of a law; for what the engine cannot do, one that skips. */
export function lawsBut(cannot: Cannot): Laws {
  return (law) => {
    const reason = cannot[law];
    return reason === undefined
      ? { test: it, because: "" }
      : { test: it.skip, because: ` (${reason})` };
  };
}
