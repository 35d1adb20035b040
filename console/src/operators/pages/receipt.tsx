import { get } from "../../api/client.ts";
import type { Receipt } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import { Facts, PageHead, Section } from "../../components/page.tsx";
import { Loaded } from "../../components/state.tsx";
import { Credits, Id, Time } from "../../components/text.tsx";
import { linkTo } from "../../place.ts";
import { countText, durationText } from "../../words.ts";
import { ChainCheck } from "./chain-check.tsx";
import { Outcome } from "./receipts.tsx";

const openEveryMs = 2_000;

/** One request: when what happened, what it cost and why, and its place in the chain. */
export function ReceiptPage({ id }: { readonly id: string }) {
  const load = useLoad(`receipt ${id}`, (signal) =>
    get<Receipt>(`/receipts/${encodeURIComponent(id)}`, { signal }),
  );
  const open = load.data?.state === "open";
  // A request that runs is asked about again until it is settled.
  useLoad(
    `${id} ${open ? "open" : ""}`,
    () => Promise.resolve(open && load.reload()),
    open ? openEveryMs : null,
  );
  return (
    <Loaded
      load={load}
      what="the receipt"
      head={<PageHead title="Receipt" trail={[["Receipts", linkTo(["receipts"])]]} />}
    >
      {(receipt) => (
        <>
          <PageHead
            title="Receipt"
            trail={[["Receipts", linkTo(["receipts"])]]}
            badge={<Outcome receipt={receipt} />}
          >
            <Id>{receipt.id}</Id>
          </PageHead>
          <Section title="What happened">
            <TimeLine receipt={receipt} />
            <Facts
              rows={[
                ["Account", <a href={linkTo(["accounts", receipt.account])}>{receipt.account}</a>],
                ["Key", <a href={linkTo(["receipts"], { key: receipt.key })}>{receipt.key}</a>],
                ["Format", `${receipt.format}${receipt.streamed ? ", streamed" : ""}`],
                ["Most input estimated", `${countText(receipt.input_bound)} tokens`],
                ["Most output allowed", `${countText(receipt.output_allowance)} tokens`],
              ]}
            />
          </Section>
          <Section title="What it cost">
            <Sum receipt={receipt} />
          </Section>
          <Section title="Its place in the chain">
            <ChainCheck receipt={receipt} />
          </Section>
        </>
      )}
    </Loaded>
  );
}

/** Admitted, first output, end: as far as each has come, by its share of the time. */
function TimeLine({ receipt }: { readonly receipt: Receipt }) {
  const {
    admitted_at: admitted,
    first_output_ms: first,
    resolved_at: resolved,
    total_ms: total,
  } = receipt;
  const settledMs = resolved === null ? null : Date.parse(resolved) - Date.parse(admitted);
  const whole = Math.max(total ?? 0, settledMs ?? 0, first ?? 0, 1);
  const steps: readonly (readonly [string, number | null])[] = [
    ["Admitted", 0],
    ["First output", first],
    ["End of the answer", total],
    ["Settled", settledMs],
  ];
  return (
    <div class="time-line">
      <div class="time-bar" aria-hidden="true">
        {first !== null && <span class="time-wait" style={{ width: percent(first, whole) }} />}
        {first !== null && total !== null && (
          <span class="time-output" style={{ width: percent(Math.max(total - first, 0), whole) }} />
        )}
      </div>
      <ol>
        {steps.map(([name, ms]) => (
          <li key={name} class={ms === null ? "quiet" : ""}>
            <span>{name}</span>{" "}
            <span class="number">
              {ms === null ? (
                "–"
              ) : name === "Admitted" ? (
                <Time at={admitted} />
              ) : (
                `+${durationText(ms)}`
              )}
            </span>
          </li>
        ))}
      </ol>
    </div>
  );
}

function percent(part: number, whole: number): string {
  return `${String(Math.round((part / whole) * 1_000) / 10)}%`;
}

const items = { input: "Input", cached_input: "Cached input", output: "Output" } as const;

/** The sum line by line, each exact; the total is rounded up to 1e-9 credit once. */
function Sum({ receipt }: { readonly receipt: Receipt }) {
  const { charged, lines, price_list: list, reserved, usage } = receipt;
  if (charged === null)
    return (
      <p>
        It holds <Credits amount={reserved} unit /> until it is settled.
      </p>
    );
  if (lines === null || usage === null)
    return (
      <p>
        Charged <Credits amount={charged} unit />: nothing was used that is charged for. Of the{" "}
        <Credits amount={reserved} unit /> that it held all went back.
      </p>
    );
  return (
    <>
      <div class="table">
        <table class="sum">
          <caption class="unseen">The sum</caption>
          <thead>
            <tr>
              <th scope="col">What</th>
              <th scope="col" class="right">
                Tokens
              </th>
              <th scope="col" class="right">
                Credits a million
              </th>
              <th scope="col" class="right">
                Credits
              </th>
            </tr>
          </thead>
          <tbody>
            {lines.map(({ amount, item, price, tokens }) => (
              <tr key={item}>
                <th scope="row">{items[item]}</th>
                <td class="right number">{countText(tokens)}</td>
                <td class="right">
                  <Credits amount={price} />
                </td>
                <td class="right">
                  <Credits amount={amount} />
                </td>
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row" colSpan={3}>
                Charged, rounded up to a billionth once
              </th>
              <td class="right">
                <Credits amount={charged} />
              </td>
            </tr>
          </tfoot>
        </table>
      </div>
      <p class="hint">
        By the price list <a href={linkTo(["prices"])}>{list}</a>. Of the output{" "}
        {countText(usage.reasoning_tokens)} tokens were reasoning. It held{" "}
        <Credits amount={reserved} unit /> while it ran.
      </p>
    </>
  );
}
