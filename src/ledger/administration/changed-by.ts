import { OperatorError } from "../operator-error.ts";

/** Who changes something: an operator's id, `user:NAME` of a command, or the service itself. */
export type Actor = `oper_${string}` | `user:${string}` | "service";

/** Under which key a change happens at most once, for 30 days. */
export interface Once {
  /** Such as `POST /accounts`. */
  readonly route: string;
  /** 1 to 255 visible ASCII characters. */
  readonly key: string;
  /** SHA-256 of what was asked for. */
  readonly bodyHash: Uint8Array;
}

/** Who changes something, and whether a repeat answers what the first time answered. */
export interface ChangedBy {
  readonly actor: Actor;
  readonly once: Once | null;
  /** The version that what is changed has to have; absent: any. */
  readonly ifVersion?: number | null;
}

/** What a change is asked for with. `by` absent: the service itself. */
export type Change<Order> = Order & { readonly by?: ChangedBy };

/** Of a change: when, in milliseconds since 1970, and by whom. */
export interface ChangeContext {
  readonly nowMs: number;
  readonly actor: Actor;
  readonly ifVersion?: number | null;
}

/** Throws unless what is changed has the version that the change was made for. */
export function ensureVersion(version: number, { ifVersion = null }: ChangeContext): void {
  if (ifVersion === null || ifVersion === version) return;
  throw new OperatorError(
    "version_conflict",
    `It has version ${String(version)} by now, and the change was made for ${String(ifVersion)}. Read it again, and send the change with its version.`,
    { param: "if-match" },
  );
}

/** What of a thing to change; what is undefined stays as it was. */
export type Patch<Value> = { readonly [Name in keyof Value]?: Value[Name] | undefined };

/** The members of a patch that are there. */
export function present<Value extends object>(patch: Patch<Value> | undefined): Partial<Value> {
  const members = Object.entries(patch ?? {}).filter(([, member]) => member !== undefined);
  return Object.fromEntries(members) as Partial<Value>;
}
