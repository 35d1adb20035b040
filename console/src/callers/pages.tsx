import type { VNode } from "preact";
import { PageHead } from "../components/page.tsx";
import { ReceiptList } from "../receipts/receipt-list.tsx";
import { ReceiptView } from "../receipts/receipt-view.tsx";
import { AccountPage } from "./pages/account.tsx";
import { ClientsPage } from "./pages/clients.tsx";
import { PlaygroundPage } from "./pages/playground.tsx";
import { StatementsPage } from "./pages/statements.tsx";

/** What a page shows, given who looks and what the address says. */
export interface CallerPage {
  readonly title: string;
  readonly view: (given: {
    readonly caller: { readonly secret: string; readonly onKey: (key: string) => void };
    readonly id: string;
    readonly query: URLSearchParams;
  }) => VNode;
}

/** The pages by the first part of their address, in their order. */
export const tabs = [
  ["", "Account"],
  ["receipts", "Receipts"],
  ["statements", "Statements"],
  ["playground", "Playground"],
  ["clients", "Clients"],
] as const;

const pages: Readonly<Record<string, CallerPage>> = {
  "": { title: "Account", view: ({ query }) => <AccountPage query={query} /> },
  receipts: {
    title: "Receipts",
    view: ({ query }) => (
      <>
        <PageHead title="Receipts">
          <span class="quiet">What each request was charged, in credits; the newest first.</span>
        </PageHead>
        <ReceiptList query={query} ofCaller />
      </>
    ),
  },
  statements: {
    title: "Statements",
    view: ({ caller, query }) => <StatementsPage secret={caller.secret} query={query} />,
  },
  playground: { title: "Playground", view: ({ caller }) => <PlaygroundPage {...caller} /> },
  clients: { title: "Clients", view: ({ caller }) => <ClientsPage secret={caller.secret} /> },
};
const receipt: CallerPage = {
  title: "Receipt",
  view: ({ id }) => <ReceiptView key={id} id={id} ofCaller />,
};

/** The page of a place; null: there is none. */
export function pageOf([name = "", id, ...rest]: readonly string[]): CallerPage | null {
  if (rest.length > 0) return null;
  if (id !== undefined) return name === "receipts" ? receipt : null;
  return Object.hasOwn(pages, name) ? (pages[name] ?? null) : null;
}
