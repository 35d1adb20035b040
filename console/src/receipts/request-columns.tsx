import type { Column } from "../components/table.tsx";
import { linkTo } from "../place.ts";
import { formatText } from "../words.ts";
import { AccountName } from "./account-name.tsx";

// What lists of requests have in common, whether these run or have ended.

/** The request, which leads to its receipt. */
export const requestColumn: Column<{ readonly id: string }> = {
  head: "Request",
  names: true,
  cell: ({ id }) => (
    <a href={linkTo(["receipts", id])}>
      <code>{id}</code>
    </a>
  ),
};

/** Whose it is. */
export const accountColumn: Column<{ readonly account: string }> = {
  head: "Account",
  cell: ({ account }) => <AccountName id={account} />,
};

/** In which format it was asked, and whether streamed. */
export const formatColumn: Column<Parameters<typeof formatText>[0]> = {
  head: "Format",
  cell: formatText,
};
