import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "./client.ts";

/** What is on its way from the API, there, or could not be had. */
export interface Load<Data> {
  readonly data: Data | null;
  readonly error: ApiError | null;
  readonly loading: boolean;
  /** Asks again; what is there stays until the answer comes, or fails to, which is when this resolves. */
  readonly reload: () => Promise<void>;
}

/**
 * Asks the API whenever `name` changes, and every `everyMs` where that is given, unless an answer is still on its way; an
 * older answer never replaces a newer. `name` stands for all that `load` reads.
 */
export function useLoad<Data>(
  name: string,
  load: (signal: AbortSignal) => Promise<Data>,
  everyMs: number | null = null,
): Load<Data> {
  const [state, setState] = useState<{
    readonly name: string;
    readonly data: Data | null;
    readonly error: ApiError | null;
    readonly loading: boolean;
  }>({ name, data: null, error: null, loading: true });
  const [turn, setTurn] = useState(0);
  const latest = useRef(load);
  latest.current = load;
  const asking = useRef(false);
  const waiting = useRef<(() => void)[]>([]);
  useEffect(() => {
    const stop = new AbortController();
    const waiters = waiting.current.splice(0);
    const end = (next: Parameters<typeof setState>[0]): void => {
      if (stop.signal.aborted) return;
      asking.current = false;
      setState(next);
      for (const resolve of waiters.splice(0)) resolve();
    };
    asking.current = true;
    setState((old) =>
      old.name === name
        ? { ...old, loading: true }
        : { name, data: null, error: null, loading: true },
    );
    latest
      .current(stop.signal)
      .then((data) => end({ name, data, error: null, loading: false }))
      .catch((error: unknown) => {
        const known = error instanceof ApiError ? error : unexpected(error);
        end((old) => ({ ...old, error: known, loading: false }));
      });
    return () => {
      stop.abort();
      // The next answer comes in the place of this one.
      waiting.current.push(...waiters);
    };
  }, [name, turn]);
  const reload = useCallback(
    () =>
      new Promise<void>((resolve) => {
        waiting.current.push(resolve);
        setTurn((old) => old + 1);
      }),
    [],
  );
  useEffect(() => {
    if (everyMs === null) return;
    const timer = setInterval(() => {
      if (!document.hidden && !asking.current) void reload();
    }, everyMs);
    return () => clearInterval(timer);
  }, [everyMs, reload]);
  const current = state.name === name;
  return {
    data: current ? state.data : null,
    error: current ? state.error : null,
    loading: current ? state.loading : true,
    reload,
  };
}

function unexpected(error: unknown): ApiError {
  const detail = error instanceof Error ? error.message : String(error);
  return new ApiError({ status: 0, code: "page_error", detail });
}
