import { Figure, Figures } from "./page.tsx";
import { Credits, Time } from "./text.tsx";

/** A key's budget as the API answers it, to operators and to callers. */
export interface BudgetOf {
  readonly budget: {
    readonly amount: string;
    readonly period: "day" | "week" | "month" | "total";
    readonly timezone: string;
  } | null;
  readonly budget_spent: string | null;
  readonly budget_held: string | null;
  readonly budget_left: string | null;
  readonly budget_ends_at: string | null;
}

/** The budget of a key: what is left of it and until when, and what is spent and held. */
export function BudgetFigures({ of }: { readonly of: BudgetOf }) {
  const { budget, budget_ends_at: ends } = of;
  if (budget === null) return null;
  return (
    <Figures>
      <Figure
        name="Left of the key's budget"
        note={
          ends === null ? (
            "credits, without an end"
          ) : (
            <>
              credits, until <Time at={ends} />
            </>
          )
        }
      >
        <Credits amount={of.budget_left ?? "0"} />
      </Figure>
      <Figure name="Budget" note={`credits ${periodWords(budget)}`}>
        <Credits amount={budget.amount} />
      </Figure>
      <Figure name="Charged" note="credits, for requests that were admitted in the period">
        <Credits amount={of.budget_spent ?? "0"} />
      </Figure>
      <Figure name="Held" note="credits, by those that run">
        <Credits amount={of.budget_held ?? "0"} />
      </Figure>
    </Figures>
  );
}

/** Of what a budget is: such as "each month of Europe/Berlin". */
export function periodWords({ period, timezone }: NonNullable<BudgetOf["budget"]>): string {
  return period === "total" ? "in all" : `each ${period} of ${timezone}`;
}

/** What is left of a budget in a table's cell. */
export function BudgetLeft({ of }: { readonly of: BudgetOf }) {
  const { budget, budget_left: left } = of;
  if (budget === null || left === null) return <span class="quiet">no budget</span>;
  return (
    <span title={periodWords(budget)}>
      <Credits amount={left} /> <span class="quiet">of {budget.amount}</span>
    </span>
  );
}
