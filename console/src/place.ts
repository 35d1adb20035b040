/** Where the page is: the part of the address after `#`, which no server sees. */
export interface Place {
  /** Such as ["accounts", "acct_x"]. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

/** The place that an address names. */
export function placeOf(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter((part) => part !== "");
  return { path: parts.map(decodePart), query: new URLSearchParams(query) };
}

/** The link to a place. */
export function linkTo(
  path: readonly string[],
  query: Readonly<Record<string, string | null | undefined>> = {},
): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== null && value !== undefined && value !== "") parameters.set(name, value);
  const text = parameters.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text === "" ? "" : `?${text}`}`;
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
