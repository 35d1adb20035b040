import { ask, type Steps } from "../administration/steps.ts";
import { type Row, textOf } from "../row.ts";
import { addRow, noSums, type UsageSums } from "./measures.ts";
import type { UsageGroup, UsageQuery, UsageRow, UsageTime } from "./usage-query.ts";

/** The groups of a query, as rows are added to them. */
export interface UsageGroups {
  /** A row of an instant outside the query's times is left out. */
  add(row: Row, atMs: number, sign: 1 | -1): void;
  count(): number;
  /** Those that have requests, in the order of their times and ids, with names beside ids. */
  named(): Steps<readonly UsageRow[]>;
}

/** Begins without any group. */
export function openGroups({ by }: UsageQuery, times: readonly UsageTime[]): UsageGroups {
  const isTimed = by.some((one) => one === "hour" || one === "day" || one === "month");
  const groups = new Map<
    string,
    UsageGroup & { readonly sums: UsageSums; readonly order: string }
  >();
  function groupOf(row: Row, time: UsageTime): UsageGroup {
    const label = by.includes("label") ? textOf(row, "of_label") : "";
    return {
      ...(isTimed ? { time } : {}),
      ...(by.includes("account") ? { accountId: textOf(row, "of_account") } : {}),
      ...(by.includes("key") ? { keyId: textOf(row, "of_key") } : {}),
      ...(by.includes("format") ? { format: textOf(row, "of_format") } : {}),
      ...(by.includes("label") ? { label: label === "" ? null : label } : {}),
    };
  }
  return {
    add(row, atMs, sign) {
      const time = timeAt(times, atMs);
      if (time === null) return;
      const group = groupOf(row, time);
      const { accountId = "", format = "", keyId = "", label } = group;
      const order = [String(time.beginMs).padStart(16, "0"), accountId, keyId, format, label ?? ""];
      const name = order.join("\n");
      const there = groups.get(name) ?? { ...group, sums: noSums(), order: name };
      groups.set(name, there);
      addRow(there.sums, row, sign);
    },
    count: () => groups.size,
    *named() {
      const rows = [...groups.values()]
        .filter(({ sums }) => sums.requests > 0)
        .toSorted((one, other) => (one.order < other.order ? -1 : 1));
      const accounts = yield* namesOf(
        "account",
        rows.map(({ accountId }) => accountId),
      );
      const keys = yield* namesOf(
        "api_key",
        rows.map(({ keyId }) => keyId),
      );
      return rows.map(({ order: _order, ...row }) => ({
        ...row,
        ...(row.accountId === undefined
          ? {}
          : { accountName: accounts.get(row.accountId) ?? null }),
        ...(row.keyId === undefined ? {} : { keyName: keys.get(row.keyId) ?? null }),
      }));
    },
  };
}

function timeAt(times: readonly UsageTime[], atMs: number): UsageTime | null {
  let [from, to] = [0, times.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((times[middle]?.endMs ?? 0) <= atMs) from = middle + 1;
    else to = middle;
  }
  const time = times[from];
  return time === undefined || atMs < time.beginMs ? null : time;
}

function* namesOf(
  table: "account" | "api_key",
  ids: readonly (string | undefined)[],
): Steps<ReadonlyMap<string, string>> {
  const wanted = [...new Set(ids.filter((id) => id !== undefined))];
  const names = new Map<string, string>();
  const idsMax = 500;
  for (let from = 0; from < wanted.length; from += idsMax) {
    const some = wanted.slice(from, from + idsMax);
    const places = some.map((_, at) => `$${String(at + 1)}`).join(", ");
    const rows = yield* ask(
      `select id, name from tributary.${table} where id in (${places})`,
      ...some,
    );
    for (const row of rows) names.set(textOf(row, "id"), textOf(row, "name"));
  }
  return names;
}
