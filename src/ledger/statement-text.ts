import { createHash } from "node:crypto";
import { formatCredit } from "../admission/price.ts";
import type { Statement } from "./administration/statement.ts";
import { csvLine } from "./csv.ts";

/** A statement as the API answers it: amounts are decimal strings of credits, times RFC 3339. */
export interface StatementJson {
  account: string;
  name: string;
  external_id: string | null;
  month: string;
  opening_balance: string;
  top_ups: string;
  grants: string;
  refunds: string;
  corrections: string;
  charged: string;
  closing_balance: string;
  days: { day: string; requests: number; charged: string }[];
  credits: {
    sequence: number;
    at: string;
    kind: string;
    amount: string;
    reference: string | null;
    receipt: string | null;
    note: string | null;
  }[];
  credits_total: number;
  head: string | null;
}

/** The statement as `StatementJson` has it. */
export function statementToJson(statement: Statement): StatementJson {
  const { account, sums } = statement;
  return {
    account: account.id,
    name: account.name,
    external_id: account.externalId,
    month: statement.month,
    opening_balance: formatCredit(statement.openingNanos),
    top_ups: formatCredit(sums.topUpsNanos),
    grants: formatCredit(sums.grantsNanos),
    refunds: formatCredit(sums.refundsNanos),
    corrections: formatCredit(sums.correctionsNanos),
    charged: formatCredit(sums.chargedNanos),
    closing_balance: formatCredit(statement.closingNanos),
    days: statement.days.map(({ chargedNanos, day, requests }) => ({
      day,
      requests,
      charged: formatCredit(chargedNanos),
    })),
    credits: statement.credits.map(({ amountNanos, atMs, ...rest }) => ({
      sequence: rest.sequence,
      at: new Date(atMs).toISOString(),
      kind: rest.kind,
      amount: formatCredit(amountNanos),
      reference: rest.reference,
      receipt: rest.receipt,
      note: rest.note,
    })),
    credits_total: statement.creditsTotal,
    head: statement.head,
  };
}

type Line = readonly [
  what: string,
  at: string,
  amount: string,
  requests: number | null,
  reference: string | null,
  receipt: string | null,
  note: string | null,
];

const heads = ["what", "at", "amount", "requests", "reference", "receipt", "note"] as const;

/** What the statement says, a line each: what was charged has a minus, so that all amounts between the balances add up. */
function linesOf(statement: StatementJson): readonly Line[] {
  const { closing_balance: closing, credits, days, month, opening_balance: opening } = statement;
  return [
    ["opening balance", `${month}-01`, opening, null, null, null, null],
    ...credits.map(({ amount, at, kind, note, receipt, reference }): Line => [
      kind.replace("_", "-"),
      at,
      amount,
      null,
      reference,
      receipt,
      note,
    ]),
    ...days.map(({ charged, day, requests }): Line => [
      "usage",
      day,
      charged === "0" ? charged : `-${charged}`,
      requests,
      null,
      null,
      null,
    ]),
    ["closing balance", month, closing, null, null, null, null],
    ["head", month, "", null, null, null, statement.head],
  ];
}

/** The forms in which a statement is written. */
export const statementForms = ["json", "csv", "html"] as const;

/** One of them. */
export type StatementForm = (typeof statementForms)[number];

/** The form that an `accept` header asks for: a browser asks for text/html first, a program for nothing or for JSON. */
export function statementFormOf(accept = ""): StatementForm {
  if (accept.includes("application/json")) return "json";
  return statementForms.find((one) => accept.includes(`text/${one}`)) ?? "json";
}

/** The statement in one of its forms, with the headers that go with it. */
export function writeStatement(
  statement: Statement,
  form: StatementForm,
): { readonly headers: Readonly<Record<string, string>>; readonly body: string } {
  const json = statementToJson(statement);
  switch (form) {
    case "json":
      return { headers: { "content-type": "application/json" }, body: JSON.stringify(json) };
    case "csv":
      return {
        headers: {
          "content-type": "text/csv; charset=utf-8",
          "content-disposition": `attachment; filename="${json.account}-${json.month}.csv"`,
        },
        body: statementToCsv(json),
      };
    case "html":
      return {
        headers: {
          "content-type": "text/html; charset=utf-8",
          "content-security-policy": statementPolicy,
          "x-content-type-options": "nosniff",
        },
        body: statementToPage(json),
      };
    default:
      return form satisfies never;
  }
}

/** The statement as CSV. */
export function statementToCsv(statement: StatementJson): string {
  return [heads, ...linesOf(statement)].map(csvLine).join("");
}

const style = `body{font:14px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #ccc}
td.amount,th.amount{text-align:right;font-variant-numeric:tabular-nums}
p.head{overflow-wrap:anywhere;font-family:monospace}@media print{body{margin:0;max-width:none}}`;

/** The content security policy of the page: its own style alone, no script, no other host. */
export const statementPolicy = `default-src 'none'; style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

/** The statement as a page to print. */
export function statementToPage(statement: StatementJson): string {
  const { account, head, month, name } = statement;
  const rows = linesOf(statement)
    .filter(([what]) => what !== "head")
    .map(([what, at, amount, requests, ...words]) => {
      const about = words.filter((word) => word !== null).join(", ");
      const count = requests === null ? "" : String(requests);
      return `<tr><td>${escape(what)}</td><td>${escape(at)}</td><td class="amount">${escape(amount)}</td><td class="amount">${count}</td><td>${escape(about)}</td></tr>`;
    });
  const proof =
    head === null ? "" : `<p>Head of the journal:</p><p class="head">${escape(head)}</p>`;
  const more =
    statement.credits_total > statement.credits.length
      ? `<p>The first ${String(statement.credits.length)} of ${String(statement.credits_total)} credits are listed; the sums have all of them.</p>`
      : "";
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${escape(name)}: ${escape(month)}</title><style>${style}</style></head>
<body><h1>Statement of ${escape(month)}</h1><p>${escape(name)} (${escape(account)}), days and month of UTC, amounts in credits</p>
<table><thead><tr><th>what</th><th>at</th><th class="amount">amount</th><th class="amount">requests</th><th>about</th></tr></thead>
<tbody>${rows.join("\n")}</tbody></table>${more}${proof}</body></html>
`;
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? "");
}
