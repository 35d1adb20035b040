import { ApiError } from "../../api/client.ts";
import { Button } from "../../components/button.tsx";
import { PageHead } from "../../components/page.tsx";
import { say } from "../../components/toast.tsx";
import { StatementView } from "../../statements/statement-view.tsx";
import { fetchWith } from "../ask-as-caller.ts";

const path = "/account/statements";
const forms = [
  ["text/html", "html", "Page to print"],
  ["text/csv", "csv", "CSV"],
  ["application/json", "json", "JSON"],
] as const;

/** The account's statements, month by month; as files they are fetched with the key, which no link has. */
export function StatementsPage({
  query,
  secret,
}: {
  readonly secret: string;
  readonly query: URLSearchParams;
}) {
  return (
    <>
      <PageHead title="Statements">
        <span class="quiet">What moved the balance of the account in a month.</span>
      </PageHead>
      <StatementView
        path={path}
        since={null}
        place={{ path: ["statements"] }}
        filters={noFilters}
        query={query}
        downloads={(month) =>
          forms.map(([accept, ending, words]) => (
            <Button
              key={ending}
              onClick={() =>
                void download(`statement-${month}.${ending}`, () =>
                  fetchWith(secret, `${path}/${month}`, { accept }),
                )
              }
            >
              {words}
            </Button>
          ))
        }
      />
    </>
  );
}

const noFilters = {};

async function download(name: string, load: () => Promise<Response>): Promise<void> {
  try {
    const url = URL.createObjectURL(await (await load()).blob());
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
    URL.revokeObjectURL(url);
  } catch (caught) {
    if (!(caught instanceof ApiError)) throw caught;
    say(caught.message, "bad");
  }
}
