import { useEffect, useState } from "preact/hooks";
import { type Place, placeOf } from "./place.ts";

/** The present place, as it changes. */
export function usePlace(): Place {
  const [hash, setHash] = useState(() => location.hash);
  useEffect(() => {
    const changed = (): void => setHash(location.hash);
    addEventListener("hashchange", changed);
    // It may have changed between the first look and this one.
    changed();
    return () => removeEventListener("hashchange", changed);
  }, []);
  return placeOf(hash);
}

/** Goes to a place; `replace` leaves no step back. */
export function goTo(link: string, replace = false): void {
  if (replace) location.replace(link);
  else location.hash = link.slice(1);
}
