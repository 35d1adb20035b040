import { PageHead } from "../../components/page.tsx";
import { ReceiptList } from "../../receipts/receipt-list.tsx";

/** Receipts of all accounts. */
export function ReceiptsPage({ query }: { readonly query: URLSearchParams }) {
  return (
    <>
      <PageHead title="Receipts">
        <span class="quiet">
          What each request reserved and was charged, by the time of its admission.
        </span>
      </PageHead>
      <ReceiptList query={query} />
    </>
  );
}
