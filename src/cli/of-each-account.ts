/** One grouping is of each account, as the command always was; two are as they are named. */
export function ofEachAccount(by: string): string {
  return by.includes(",") || by === "account" ? by : `account,${by}`;
}
