import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Session } from "../api/types.ts";

/** Who has signed in; every page is inside of it. */
export const SessionContext = createContext<Session | null>(null);

const ranks = { viewer: 0, billing: 1, owner: 2 } as const;

/** Whether the one who looks may do what this role may: a button that would be refused is not shown. */
export function useMay(least: keyof typeof ranks): boolean {
  const session = useContext(SessionContext);
  return session !== null && ranks[session.operator.role] >= ranks[least];
}
