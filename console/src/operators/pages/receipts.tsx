import { PageHead } from "../../components/page.tsx";
import { ReceiptList } from "../../receipts/receipt-list.tsx";

/** Receipts of all accounts. */
export function ReceiptsPage({ query }: { readonly query: URLSearchParams }) {
  return (
    <>
      <PageHead title="Receipts">
        <span class="quiet">What each request was charged, in credits; the newest first.</span>
      </PageHead>
      <ReceiptList query={query} />
    </>
  );
}
