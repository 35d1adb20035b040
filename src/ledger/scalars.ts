// What records, entries and budgets are made of; `records.ts` reads all three, so these stand apart from it.

/** Credit in integers of 1e-9 credit. */
export type CreditNanos = bigint;
/** Public id of an account: `acct_` and letters and digits. */
export type AccountId = `acct_${string}`;
/** Public id of a key: `key_` and letters and digits. */
export type KeyId = `key_${string}`;
/** Id of a request, the same in headers, logs, ledger and error bodies. */
export type RequestId = `req_${string}`;
