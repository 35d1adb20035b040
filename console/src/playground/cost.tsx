import { useState } from "preact/hooks";
import { useAsk } from "../api/ask.ts";
import { ApiError } from "../api/client.ts";
import type { Receipt } from "../api/types.ts";
import { useLoad } from "../api/use-load.ts";
import { Figure } from "../components/page.tsx";
import { Credits } from "../components/text.tsx";
import { linkTo } from "../place.ts";
import { countText, creditText } from "../words.ts";

const settledEveryMs = 500;

/** The receipt of a request, asked for again until it is settled; null: not yet, or none, as of what was not admitted. */
export function useReceiptOf(id: string | null): Receipt | null {
  const ask = useAsk();
  const [settled, setSettled] = useState<string | null>(null);
  const { data } = useLoad(
    `receipt ${id ?? ""}`,
    async (signal) => {
      if (id === null) return null;
      const receipt = await ask<Receipt>(`/receipts/${id}`, { signal }).catch((error: unknown) => {
        if (error instanceof ApiError && error.status === 404) return null;
        throw error;
      });
      if (receipt === null || receipt.state !== "open") setSettled(id);
      return receipt;
    },
    settled === id ? null : settledEveryMs,
  );
  return data;
}

/** What a request was charged, as soon as it is settled; before, what it holds. */
export function CostFigure({ receipt }: { readonly receipt: Receipt | null }) {
  if (receipt === null) return <Figure name="Cost">–</Figure>;
  const { charged, id, reserved } = receipt;
  return (
    <Figure
      name="Cost"
      href={linkTo(["receipts", id])}
      note={charged === null ? "held until it ends" : `credits, of ${creditText(reserved)} held`}
    >
      <Credits amount={charged ?? reserved} />
    </Figure>
  );
}

const items = { input: "in", cached_input: "in from the cache", output: "out" } as const;

/** Why so much was held and charged, in a sentence each. */
export function CostWords({ receipt }: { readonly receipt: Receipt }) {
  const { charged, input_bound: input, lines, output_allowance: output, reserved } = receipt;
  const used = lines
    ?.filter(({ tokens }) => tokens > 0)
    .map(({ item, price, tokens }) => `${countText(tokens)} tokens ${items[item]} at ${price}`);
  return (
    <p class="hint">
      Held <Credits amount={reserved} unit /> for the most it could use: {countText(input)} tokens
      in and {countText(output)} out.{" "}
      {charged !== null &&
        (used === undefined
          ? "All of it went back: nothing is charged for how it ended."
          : `Charged for what it used: ${used.join(", ")} credits a million.`)}
    </p>
  );
}
