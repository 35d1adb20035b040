import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "./client.ts";

/** What is on its way from the API, there, or could not be had. */
export interface Load<Data> {
  readonly data: Data | null;
  readonly error: ApiError | null;
  readonly loading: boolean;
  /** Asks again; what is there stays until the answer comes. */
  readonly reload: () => void;
}

/**
 * Asks the API whenever `name` changes, and every `everyMs` where that is given; an older answer never replaces a newer.
 * `name` stands for all that `load` reads.
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
  useEffect(() => {
    const stop = new AbortController();
    setState((old) =>
      old.name === name
        ? { ...old, loading: true }
        : { name, data: null, error: null, loading: true },
    );
    latest
      .current(stop.signal)
      .then((data) => {
        if (!stop.signal.aborted) setState({ name, data, error: null, loading: false });
      })
      .catch((error: unknown) => {
        if (stop.signal.aborted) return;
        const known = error instanceof ApiError ? error : unexpected(error);
        setState((old) => ({ ...old, error: known, loading: false }));
      });
    return () => stop.abort();
  }, [name, turn]);
  const reload = useCallback(() => setTurn((old) => old + 1), []);
  useEffect(() => {
    if (everyMs === null) return;
    const timer = setInterval(() => {
      if (!document.hidden) reload();
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
