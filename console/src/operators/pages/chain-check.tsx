import { useEffect, useState } from "preact/hooks";
import { get } from "../../api/client.ts";
import type { Entry, Page, Receipt } from "../../api/types.ts";
import { checkChain, type ChainResult, firstHash } from "../../chain.ts";
import { Badge } from "../../components/text.tsx";

type State =
  | { readonly name: "checking" }
  | { readonly name: "impossible"; readonly why: string }
  | { readonly name: "done"; readonly result: ChainResult; readonly entries: readonly Entry[] };

/** Pages of entries that are read at most, to where the request was admitted. */
const pagesMax = 20;
const rowsOfPage = 500;

/** Recomputes the entries of a request in the browser, on from the entry before it. */
export function ChainCheck({ receipt }: { readonly receipt: Receipt }) {
  const [state, setState] = useState<State>({ name: "checking" });
  const { account, head, id } = receipt;
  useEffect(() => {
    let left = false;
    check(receipt).then(
      (found) => {
        if (!left) setState(found);
      },
      (error: unknown) => {
        const why = error instanceof Error ? error.message : String(error);
        if (!left) setState({ name: "impossible", why });
      },
    );
    return () => {
      left = true;
    };
  }, [id, head]);
  return (
    <div class="chain" role="status">
      {state.name === "checking" && <p class="quiet">Recomputing the entries …</p>}
      {state.name === "impossible" && <p>The chain was not checked: {state.why}</p>}
      {state.name === "done" && (
        <>
          <p>
            {state.result.state === "right" ? (
              <>
                <Badge tone="good">verified</Badge> This browser recomputed{" "}
                {state.result.checked === 1
                  ? "the entry"
                  : `${String(state.result.checked)} entries`}{" "}
                from the admission of this request to its newest entry; the last hash is the
                receipt's.
              </>
            ) : (
              <>
                <Badge tone="bad">broken</Badge> The chain of {account} breaks at entry{" "}
                {state.result.sequence}: {state.result.why}.
              </>
            )}
          </p>
          <ol class="links">
            {state.entries
              .filter(({ request }) => request === id)
              .map((entry) => (
                <li key={entry.sequence}>
                  <span>
                    Entry {entry.sequence}, {entry.kind}
                  </span>{" "}
                  <code>{entry.hash}</code>
                </li>
              ))}
          </ol>
        </>
      )}
    </div>
  );
}

async function check({ account, head, id }: Receipt): Promise<State> {
  if (!("subtle" in crypto))
    return {
      name: "impossible",
      why: "this address is neither https nor of this machine, and browsers compute no hashes there.",
    };
  const [, sequence = "", hash = ""] = head.split(":");
  const entries = await readEntries(account, id, Number(sequence));
  const [before, ...own] = entries;
  const first = own[0] === undefined ? before : own[0];
  if (before === undefined || first === undefined)
    return {
      name: "impossible",
      why: "its entries were removed at a checkpoint; the receipt stays.",
    };
  const result =
    before.sequence === 1 && before.request === id
      ? await checkChain(account, firstHash, entries)
      : await checkChain(account, before.hash, own);
  const last = entries.at(-1);
  if (result.state === "right" && last?.hash !== hash)
    return {
      name: "done",
      entries,
      result: { state: "broken", sequence: Number(sequence), why: "the receipt has another hash" },
    };
  return { name: "done", entries, result };
}

/** From the entry before the request's first up to its newest, oldest first. */
async function readEntries(
  account: string,
  request: string,
  newest: number,
): Promise<readonly Entry[]> {
  const found: Entry[] = [];
  let before = newest + 1;
  for (let page = 0; page < pagesMax && before > 1; page += 1) {
    const query = { before, limit: rowsOfPage };
    const { data } = await get<Page<Entry>>(`/accounts/${account}/entries`, { query });
    found.unshift(...data.toReversed());
    const admitted = found.findIndex(
      (entry) => entry.request === request && entry.kind === "reserve",
    );
    if (admitted > 0) return found.slice(admitted - 1);
    if (data.length === 0 || (admitted === 0 && found[0]?.sequence === 1)) return found;
    before = found[0]?.sequence ?? 1;
  }
  return [];
}
