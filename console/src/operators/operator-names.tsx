import { getAll } from "../api/client.ts";
import type { Operator } from "../api/types.ts";
import { useLoad } from "../api/use-load.ts";
import { linkTo } from "../place.ts";

/** The names of operators by their ids; null while they are asked for, and none where they cannot be had. */
export function useOperatorNames(): ReadonlyMap<string, string> | null {
  const { data, error } = useLoad("names of operators", (signal) =>
    getAll<Operator>("/operators", { signal }),
  );
  if (data === null && error === null) return null;
  return new Map((data?.data ?? []).map(({ id, name }) => [id, name]));
}

/** The pages of what an id is of, by how it begins. */
const links: readonly (readonly [prefix: string, (id: string) => string])[] = [
  ["acct_", (id) => linkTo(["accounts", id])],
  ["key_", (id) => linkTo(["keys", id])],
  ["req_", (id) => linkTo(["receipts", id])],
  ["hook_", (id) => linkTo(["webhooks"], { webhook: id })],
  ["oper_", (id) => linkTo(["audit"], { actor: id })],
];

/** The page of what an id is of; undefined: it is none. */
export function linkOf(id: string): string | undefined {
  return links.find(([prefix]) => id.startsWith(prefix))?.[1](id);
}

/** Who did something, or to what it was done: its id, which leads to its page, and of an operator the name too. */
export function Named({
  id,
  names,
}: {
  readonly id: string;
  readonly names: ReadonlyMap<string, string> | null;
}) {
  const link = linkOf(id);
  const name = names?.get(id);
  return (
    <>
      {name !== undefined && <>{name} </>}
      {link === undefined ? (
        <code>{id}</code>
      ) : (
        <a href={link}>
          <code>{id}</code>
        </a>
      )}
    </>
  );
}
