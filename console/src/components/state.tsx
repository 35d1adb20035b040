import type { ComponentChildren } from "preact";
import type { ApiError } from "../api/client.ts";
import type { Load } from "../api/use-load.ts";
import { Button } from "./button.tsx";
import { withCode } from "./text.tsx";

/** Shows what was loaded, or the state that it is in: loading, failed, not allowed. */
export function Loaded<Data>({
  children,
  head,
  load,
  missing,
  what,
}: {
  readonly load: Load<Data>;
  /** The head of the page, where the one that comes with the data is not there yet. */
  readonly head?: ComponentChildren;
  /** What to do next where there is none. */
  readonly missing?: ComponentChildren;
  /** What is waited for, such as "the accounts". */
  readonly what: string;
  readonly children: (data: Data) => ComponentChildren;
}) {
  const again = (): void => void load.reload();
  if (load.data !== null)
    return (
      <>
        {load.error !== null && <Failed error={load.error} what={what} retry={again} stale />}
        {children(load.data)}
      </>
    );
  if (load.error !== null)
    return (
      <>
        {head}
        <Failed
          error={load.error}
          what={what}
          retry={again}
          stale={false}
          hint={load.error.status === 404 ? missing : undefined}
        />
      </>
    );
  return (
    <>
      {head}
      <Loading what={what} />
    </>
  );
}

/** Stands where something will be. */
export function Loading({ what }: { readonly what: string }) {
  return (
    <div class="state state-loading" role="status">
      <span class="skeleton" />
      <span class="skeleton" />
      <span class="skeleton" />
      <span class="unseen">Loading {what} …</span>
    </div>
  );
}

/** Says what failed and what to do. */
export function Failed({
  error,
  hint,
  retry,
  stale,
  what,
}: {
  readonly error: ApiError;
  readonly what: string;
  /** What to do next, where it is not there. */
  readonly hint?: ComponentChildren;
  readonly retry: () => void;
  /** Whether an older answer is still shown. */
  readonly stale: boolean;
}) {
  if (error.status === 403)
    return (
      <div class="state" role="alert">
        <h2>{error.code === "role_missing" ? "Not with your role" : "Not allowed"}</h2>
        <p>{withCode(error.message)}</p>
      </div>
    );
  return (
    <div class={stale ? "notice notice-bad" : "state"} role="alert">
      {!stale && <h2>Could not load {what}</h2>}
      <p>
        {withCode(error.message)}
        {stale && " What is shown is older."}
      </p>
      {hint}
      {error.requestId !== null && <p class="quiet">Request {error.requestId}</p>}
      {/* A 404 or a 401 would be the same the next time. */}
      {error.status !== 404 && error.status !== 401 && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

/** Where there is nothing: what that means, and what to do next. */
export function Empty({
  children,
  title,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="state">
      <h2>{title}</h2>
      {children}
    </div>
  );
}
