import type { ComponentChildren } from "preact";
import type { Receipt } from "../api/types.ts";
import { Credits, Time } from "../components/text.tsx";
import { countText, durationText } from "../words.ts";

/** Admitted, first output, end: as far as each has come, by its share of the time. */
export function TimeLine({ receipt }: { readonly receipt: Receipt }) {
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
      {first !== null && (
        <div class="time-bar" aria-hidden="true">
          <span class="time-wait" style={{ width: percent(first, whole) }} />
          {total !== null && (
            <span
              class="time-output"
              style={{ width: percent(Math.max(total - first, 0), whole) }}
            />
          )}
        </div>
      )}
      <ol>
        {steps.map(([name, ms]) => (
          <li key={name} class={ms === null ? "quiet" : ""}>
            <span>
              {name in swatches && <span class={`time-key ${swatches[name] ?? ""}`} />} {name}
            </span>{" "}
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

/** The parts of the bar by the step that each ends with. */
const swatches: Readonly<Record<string, string>> = {
  "First output": "time-wait",
  "End of the answer": "time-output",
};

function percent(part: number, whole: number): string {
  return `${String(Math.round((part / whole) * 1_000) / 10)}%`;
}

const items = { input: "Input", cached_input: "Cached input", output: "Output" } as const;

/** The sum line by line, each exact; the total is rounded up to 1e-9 credit once. */
export function Sum({
  children,
  receipt,
}: {
  readonly receipt: Receipt;
  /** The price list that it paid by. */
  readonly children: ComponentChildren;
}) {
  const { charged, lines, refunded, reserved, usage } = receipt;
  if (charged === null)
    return (
      <p>
        At most <Credits amount={reserved} unit />, which it holds until it is settled.
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
      <div class="table" role="region" aria-label="The sum" tabIndex={0}>
        <table class="sum">
          <caption class="unseen">The sum</caption>
          <thead>
            <tr>
              <th scope="col">What</th>
              <th scope="col" class="right">
                Tokens
              </th>
              <th scope="col" class="right">
                Credits a million tokens
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
                Charged, rounded up once to a billionth of a credit
              </th>
              <td class="right">
                <Credits amount={charged} />
              </td>
            </tr>
            {refunded !== "0" && (
              <tr>
                <th scope="row" colSpan={3}>
                  Given back by refunds
                </th>
                <td class="right">
                  <Credits amount={refunded} />
                </td>
              </tr>
            )}
          </tfoot>
        </table>
      </div>
      <p class="hint">
        By the price list {children}.
        {usage.reasoning_tokens > 0 &&
          ` Of the output ${countText(usage.reasoning_tokens)} tokens were reasoning.`}{" "}
        It held <Credits amount={reserved} unit /> while it ran.
      </p>
    </>
  );
}
