import type { VNode } from "preact";
import type { Place } from "../place.ts";
import { AccountPage } from "./pages/account.tsx";
import { AccountsPage } from "./pages/accounts.tsx";
import { AuditPage } from "./pages/audit.tsx";
import { KeyPage } from "./pages/key.tsx";
import { OperatorsPage } from "./pages/operators.tsx";
import { OverviewPage } from "./pages/overview.tsx";
import { PlaygroundPage } from "./pages/playground.tsx";
import { PricesPage } from "./pages/prices.tsx";
import { ReceiptPage } from "./pages/receipt.tsx";
import { ReceiptsPage } from "./pages/receipts.tsx";
import { RefusedPage } from "./pages/refused.tsx";
import { RunningPage } from "./pages/running.tsx";
import { SettingsPage } from "./pages/settings.tsx";
import { WebhooksPage } from "./pages/webhooks.tsx";

/** The sections, as the navigation has them. */
export const sections: readonly {
  readonly group: string;
  readonly pages: readonly { readonly path: string; readonly title: string }[];
}[] = [
  {
    group: "Service",
    pages: [
      { path: "", title: "Overview" },
      { path: "running", title: "Running" },
      { path: "refused", title: "Refused" },
      { path: "receipts", title: "Receipts" },
      { path: "playground", title: "Playground" },
    ],
  },
  {
    group: "Customers",
    pages: [
      { path: "accounts", title: "Accounts" },
      { path: "prices", title: "Prices" },
    ],
  },
  {
    group: "Administration",
    pages: [
      { path: "operators", title: "Operators" },
      { path: "webhooks", title: "Webhooks" },
      { path: "audit", title: "Audit" },
      { path: "settings", title: "Settings" },
    ],
  },
];

interface Found {
  readonly title: string;
  readonly view: VNode;
}

/** The page of a place; null: there is none. A new page is a file in `pages/`, a row here, and one in `sections`. */
export function findPage({ path, query }: Place): Found | null {
  const [section = "", id, ...rest] = path;
  if (rest.length > 0) return null;
  if (id !== undefined) {
    if (section === "accounts")
      return { title: "Account", view: <AccountPage key={id} id={id} query={query} /> };
    if (section === "keys") return { title: "Key", view: <KeyPage key={id} id={id} /> };
    if (section === "receipts") return { title: "Receipt", view: <ReceiptPage key={id} id={id} /> };
    return null;
  }
  return Object.hasOwn(pages, section) ? (pages[section]?.(query) ?? null) : null;
}

const pages: Readonly<Record<string, (query: URLSearchParams) => Found>> = {
  "": (query) => ({ title: "Overview", view: <OverviewPage query={query} /> }),
  running: () => ({ title: "Running", view: <RunningPage /> }),
  refused: () => ({ title: "Refused", view: <RefusedPage /> }),
  receipts: (query) => ({ title: "Receipts", view: <ReceiptsPage query={query} /> }),
  accounts: (query) => ({ title: "Accounts", view: <AccountsPage query={query} /> }),
  playground: () => ({ title: "Playground", view: <PlaygroundPage /> }),
  prices: () => ({ title: "Prices", view: <PricesPage /> }),
  operators: () => ({ title: "Operators", view: <OperatorsPage /> }),
  webhooks: (query) => ({ title: "Webhooks", view: <WebhooksPage query={query} /> }),
  settings: () => ({ title: "Settings", view: <SettingsPage /> }),
  audit: (query) => ({ title: "Audit", view: <AuditPage query={query} /> }),
};
