import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { isTimeZone, periodAt, type PeriodLength } from "../../src/ledger/periods.ts";

/** What this test needs of the calendar that Node brings. */
declare const Temporal: {
  readonly Instant: {
    fromEpochMilliseconds(ms: number): { toZonedDateTimeISO(zone: string): LocalTime };
  };
};
interface LocalTime {
  readonly dayOfWeek: number;
  readonly epochMilliseconds: number;
  subtract(duration: { readonly days: number }): LocalTime;
  with(fields: { readonly day: number }): LocalTime;
  startOfDay(): LocalTime;
}

// [what it shows, zone, length, an instant, begin and end of its period], written down from the zones' own rules.
const rows: readonly (readonly [string, string, PeriodLength, string, string, string])[] = [
  [
    "a day of UTC",
    "UTC",
    "day",
    "2026-11-22T13:15:00.000Z",
    "2026-11-22T00:00Z",
    "2026-11-23T00:00Z",
  ],
  [
    "its first instant",
    "UTC",
    "day",
    "2026-11-22T00:00:00.000Z",
    "2026-11-22T00:00Z",
    "2026-11-23T00:00Z",
  ],
  [
    "its last instant",
    "UTC",
    "day",
    "2026-11-22T23:59:59.999Z",
    "2026-11-22T00:00Z",
    "2026-11-23T00:00Z",
  ],
  [
    "a week from Monday",
    "UTC",
    "week",
    "2026-11-22T13:15:00.000Z",
    "2026-11-16T00:00Z",
    "2026-11-23T00:00Z",
  ],
  [
    "a Monday itself",
    "UTC",
    "week",
    "2026-11-23T00:00:00.000Z",
    "2026-11-23T00:00Z",
    "2026-11-30T00:00Z",
  ],
  [
    "a week over a new year",
    "UTC",
    "week",
    "2027-01-01T00:00:00.000Z",
    "2026-12-28T00:00Z",
    "2027-01-04T00:00Z",
  ],
  ["a month", "UTC", "month", "2026-11-22T13:15:00.000Z", "2026-11-01T00:00Z", "2026-12-01T00:00Z"],
  [
    "December",
    "UTC",
    "month",
    "2026-12-31T23:59:59.999Z",
    "2026-12-01T00:00Z",
    "2027-01-01T00:00Z",
  ],
  [
    "February of a leap year",
    "UTC",
    "month",
    "2028-02-29T12:00:00.000Z",
    "2028-02-01T00:00Z",
    "2028-03-01T00:00Z",
  ],
  [
    "before 1970",
    "UTC",
    "week",
    "1969-12-31T00:00:00.000Z",
    "1969-12-29T00:00Z",
    "1970-01-05T00:00Z",
  ],
  [
    "a zone ahead",
    "Asia/Tokyo",
    "day",
    "2026-11-22T15:00:00.000Z",
    "2026-11-22T15:00Z",
    "2026-11-23T15:00Z",
  ],
  [
    "a zone behind",
    "America/Los_Angeles",
    "month",
    "2026-11-01T06:59:59.999Z",
    "2026-10-01T07:00Z",
    "2026-11-01T07:00Z",
  ],
  [
    "an offset of quarters",
    "Asia/Kathmandu",
    "day",
    "2026-11-22T00:00:00.000Z",
    "2026-11-21T18:15Z",
    "2026-11-22T18:15Z",
  ],
  [
    "the farthest east",
    "Pacific/Kiritimati",
    "day",
    "2026-11-22T10:00:00.000Z",
    "2026-11-22T10:00Z",
    "2026-11-23T10:00Z",
  ],
  [
    "a day of 23 hours",
    "Europe/Berlin",
    "day",
    "2026-03-29T12:00:00.000Z",
    "2026-03-28T23:00Z",
    "2026-03-29T22:00Z",
  ],
  [
    "a day of 25 hours",
    "Europe/Berlin",
    "day",
    "2026-10-25T12:00:00.000Z",
    "2026-10-24T22:00Z",
    "2026-10-25T23:00Z",
  ],
  [
    "a month with summer time in it",
    "Europe/Berlin",
    "month",
    "2026-03-31T12:00:00.000Z",
    "2026-02-28T23:00Z",
    "2026-03-31T22:00Z",
  ],
  // Clocks went from 24:00 to 01:00.
  [
    "a day without a midnight",
    "America/Sao_Paulo",
    "day",
    "2018-11-04T12:00:00.000Z",
    "2018-11-04T03:00Z",
    "2018-11-05T02:00Z",
  ],
  [
    "the day before it",
    "America/Sao_Paulo",
    "day",
    "2018-11-04T02:59:59.999Z",
    "2018-11-03T03:00Z",
    "2018-11-04T03:00Z",
  ],
  [
    "a week that ends without a midnight",
    "Asia/Beirut",
    "week",
    "2022-03-27T12:00:00.000Z",
    "2022-03-20T22:00Z",
    "2022-03-27T21:00Z",
  ],
  [
    "a day without a midnight, ahead of UTC",
    "Asia/Beirut",
    "day",
    "2022-03-27T12:00:00.000Z",
    "2022-03-26T22:00Z",
    "2022-03-27T21:00Z",
  ],
  // Clocks went from 24:00 back to 23:00: the day has not begun before.
  [
    "a day whose last hour comes twice",
    "America/Sao_Paulo",
    "day",
    "2018-02-18T02:30:00.000Z",
    "2018-02-17T02:00Z",
    "2018-02-18T03:00Z",
  ],
  // Clocks went from 01:00 back to 00:00: midnight comes twice, and the first one counts.
  [
    "a day with two midnights",
    "America/Havana",
    "day",
    "2026-11-01T05:30:00.000Z",
    "2026-11-01T04:00Z",
    "2026-11-02T05:00Z",
  ],
  // Clocks went from 00:01 back to 23:01 of the day before: the day that had begun goes on.
  [
    "a day that begins twice",
    "America/St_Johns",
    "day",
    "2006-10-29T02:40:00.000Z",
    "2006-10-29T02:30Z",
    "2006-10-30T03:30Z",
  ],
  [
    "the day before it",
    "America/St_Johns",
    "day",
    "2006-10-29T02:29:59.999Z",
    "2006-10-28T02:30Z",
    "2006-10-29T02:30Z",
  ],
  // There was no 30th of December.
  [
    "the day before a missing one",
    "Pacific/Apia",
    "day",
    "2011-12-30T09:00:00.000Z",
    "2011-12-29T10:00Z",
    "2011-12-30T10:00Z",
  ],
  [
    "the day after a missing one",
    "Pacific/Apia",
    "day",
    "2011-12-30T10:00:00.000Z",
    "2011-12-30T10:00Z",
    "2011-12-31T10:00Z",
  ],
];

test.each(rows)("%s: %s %s at %s", (_what, timezone, period, at, begin, end) => {
  const found = periodAt({ period, timezone }, Date.parse(at));
  expect([found.beginMs, found.endMs ?? 0].map((ms) => new Date(ms).toISOString())).toEqual(
    [begin, end].map((text) => new Date(text).toISOString()),
  );
});

test("a total has begun before everything and never ends", () => {
  expect(periodAt({ period: "total", timezone: "UTC" }, 1)).toEqual({ beginMs: 0, endMs: null });
});

test("periods follow each other without a gap, and begin where the calendar of another library begins them", () => {
  const zones = [
    "UTC",
    "Europe/Berlin",
    "America/Havana",
    "Asia/Beirut",
    "Australia/Lord_Howe",
    "Asia/Tehran",
  ];
  fc.assert(
    fc.property(
      fc.constantFrom(...zones),
      fc.constantFrom<"day" | "week" | "month">("day", "week", "month"),
      fc.integer({ min: Date.UTC(1990, 0, 1), max: Date.UTC(2040, 0, 1) }),
      (timezone, period, nowMs) => {
        const { beginMs, endMs } = periodAt({ period, timezone }, nowMs);
        if (endMs === null) throw new Error("it has an end");
        expect(beginMs <= nowMs && nowMs < endMs).toBe(true);
        expect(periodAt({ period, timezone }, endMs).beginMs).toBe(endMs);
        expect(periodAt({ period, timezone }, beginMs - 1).endMs).toBe(beginMs);
        const local = Temporal.Instant.fromEpochMilliseconds(nowMs).toZonedDateTimeISO(timezone);
        const first = {
          day: local,
          week: local.subtract({ days: local.dayOfWeek - 1 }),
          month: local.with({ day: 1 }),
        };
        expect(first[period].startOfDay().epochMilliseconds).toBe(beginMs);
      },
    ),
    { numRuns: 40 },
  );
});

describe("a time zone", () => {
  test.each(["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5"])(
    "%s is one",
    (name) => {
      expect(isTimeZone(name)).toBe(true);
    },
  );
  test.each(["", "Mars/Phobos", "+01:00", "Europe/", "Europe/Berlin ", "berlin", "x".repeat(200)])(
    "%j is none",
    (name) => {
      expect(isTimeZone(name)).toBe(false);
    },
  );
});
