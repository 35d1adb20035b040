import { addressOf } from "../../api/client.ts";
import type { Account } from "../../api/types.ts";
import { StatementView } from "../../statements/statement-view.tsx";

const formats = [
  ["html", "Page to print"],
  ["csv", "CSV"],
  ["json", "JSON"],
] as const;

/** The account's statements, month by month. */
export function AccountStatements({
  account,
  query,
}: {
  readonly account: Account;
  readonly query: URLSearchParams;
}) {
  const path = `/accounts/${account.id}/statements`;
  return (
    <StatementView
      path={path}
      since={account.created_at}
      place={{ path: ["accounts", account.id], query: { tab: "statements" } }}
      filters={{ account: account.id }}
      query={query}
      downloads={(month) =>
        formats.map(([format, words]) => (
          <a
            key={format}
            class="button"
            href={addressOf(`${path}/${month}`, { format })}
            target="_blank"
            rel="noopener"
          >
            {words}
          </a>
        ))
      }
    />
  );
}
