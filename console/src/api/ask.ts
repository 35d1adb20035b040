import { createContext } from "preact";
import { useContext } from "preact/hooks";
import { type Call, get } from "./client.ts";

/** Reads from the API for what a page shows. */
export type Ask = <Answer>(path: string, call?: Pick<Call, "query" | "signal">) => Promise<Answer>;

/** Who asks: the operator who has signed in, unless a page of callers says that it is a key. */
export const AskContext = createContext<Ask>(get);

/** How what is shown here is asked for. */
export function useAsk(): Ask {
  return useContext(AskContext);
}
