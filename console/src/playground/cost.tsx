import { useState } from "preact/hooks";
import { useAsk } from "../api/ask.ts";
import type { Receipt } from "../api/types.ts";
import { useLoad } from "../api/use-load.ts";
import { Credits } from "../components/text.tsx";
import { linkTo } from "../place.ts";

const settledEveryMs = 500;

/** What a request was charged, as soon as it is settled; before, what it holds. */
export function Cost({ id }: { readonly id: string }) {
  const ask = useAsk();
  const [settled, setSettled] = useState(false);
  const { data } = useLoad(
    `receipt ${id}`,
    async (signal) => {
      const receipt = await ask<Receipt>(`/receipts/${id}`, { signal });
      setSettled(receipt.state !== "open");
      return receipt;
    },
    settled ? null : settledEveryMs,
  );
  if (data === null) return <>–</>;
  return (
    <a href={linkTo(["receipts", id])}>
      <Credits amount={data.charged ?? data.reserved} />
    </a>
  );
}
