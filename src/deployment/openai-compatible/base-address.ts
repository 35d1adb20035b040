/** Where a deployment is: its origin and the folders in which its routes are looked for, the likeliest first. */
export interface BaseAddress {
  readonly origin: string;
  /** Paths such as `/v1`, to which `/models` and `/chat/completions` are added. */
  readonly candidates: readonly string[];
  /** The path under which an engine keeps its own routes, such as `/props`; "" at the root. */
  readonly enginePath: string;
  /** A query that the address came with, such as an API version; "" for none. */
  readonly query: string;
}

/** Reads an address that was given with or without `/v1`. */
export function parseBaseAddress(address: string): BaseAddress {
  const url = new URL(address);
  const path = url.pathname.replace(/\/+$/u, "");
  const rest = { origin: url.origin, query: url.search };
  if (/\/v\d+$/u.test(path))
    return { ...rest, candidates: [path], enginePath: path.replace(/\/v\d+$/u, "") };
  // Some hosts keep the routes in folders that do not end in a version.
  return { ...rest, candidates: [`${path}/v1`, path], enginePath: path };
}
