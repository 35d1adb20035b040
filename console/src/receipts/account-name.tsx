import { type Ask, useAsk } from "../api/ask.ts";
import type { Account, Key, Page } from "../api/types.ts";
import { useLoad } from "../api/use-load.ts";
import { linkTo } from "../place.ts";

/** Ids of one question: the address of a call has room for them. */
const idsMax = 100;

type Names = ReadonlyMap<string, string>;
const asked = new Map<string, Promise<Names>>();
const keys = new Map<string, Promise<Key>>();
let together: { readonly ids: string[]; readonly names: Promise<Names> } | null = null;

// A name may be another one by the time that the person is on another page.
addEventListener("hashchange", () => {
  asked.clear();
  keys.clear();
});

/** One question for the accounts of all rows that are shown at once. */
function namesWith(id: string, ask: Ask): Promise<Names> {
  const known = asked.get(id);
  if (known !== undefined) return known;
  if (together === null || together.ids.length === idsMax) {
    const ids: string[] = [];
    together = { ids, names: Promise.resolve(ids).then((all) => askNames(all, ask)) };
  }
  together.ids.push(id);
  asked.set(id, together.names);
  return together.names;
}

async function askNames(ids: readonly string[], ask: Ask): Promise<Names> {
  together = null;
  const query = { id: ids.join(","), limit: ids.length };
  const { data } = await ask<Page<Account>>("/accounts", { query });
  return new Map(data.map(({ id, name }) => [id, name]));
}

/** The name of an account, or its id where it has none to be seen; null: not there yet. */
export function useAccountName(id: string): string | null {
  const ask = useAsk();
  return useLoad(`name of ${id}`, async () => (await namesWith(id, ask)).get(id) ?? id).data;
}

/** An account by its name, which leads to its page; its id until that is there. */
export function AccountName({ id }: { readonly id: string }) {
  const data = useAccountName(id);
  // As wide before as after, so that nothing moves.
  return (
    <a class="account-name" title={`${data ?? ""} ${id}`} href={linkTo(["accounts", id])}>
      {data ?? <code>{id}</code>}
    </a>
  );
}

/** One question for a key, in however many rows it stands. */
function keyWith(id: string, ask: Ask): Promise<Key> {
  const known = keys.get(id) ?? ask<Key>(`/keys/${id}`);
  keys.set(id, known);
  return known;
}

/** A key by its name, which leads to its page; its id until that is there. */
export function KeyName({ id }: { readonly id: string }) {
  const ask = useAsk();
  const { data } = useLoad(`name of ${id}`, () => keyWith(id, ask));
  return (
    <a class="account-name" title={`${data?.name ?? ""} ${id}`} href={linkTo(["keys", id])}>
      {data?.name ?? <code>{id}</code>}
    </a>
  );
}
