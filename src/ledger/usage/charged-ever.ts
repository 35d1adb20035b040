/**
 * What a key of an account was ever charged, in SQL, whose receipts may be archived: the kept sums, and the receipts that these do
 * not cover.
 */
export function chargedEver(accountId: string, keyId: string, schema = ""): string {
  return `(select coalesce(sum(charged_nanos), 0) from ${schema}usage_day where usage_day.account_id = ${accountId}
      and usage_day.key_id = ${keyId})
    + (select coalesce(sum(charged_nanos), 0) from ${schema}reservation as later where later.account_id = ${accountId}
      and later.key_id = ${keyId} and later.state <> 'open' and later.resolved_sequence >
        (select coalesce(max(summed_sequence), 0) from ${schema}usage_progress where usage_progress.account_id = ${accountId}))`;
}
