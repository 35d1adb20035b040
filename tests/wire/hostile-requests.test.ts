import { test } from "vitest";
import { expectCallersAnswered, expectOperatorsAnswered } from "./ask-hostile.ts";

// tests/slow/hostile-requests.test.ts sends the numbers, cursors and escapes too, and all of it on PostgreSQL as well.

test("operators are told where a text is none", () =>
  expectOperatorsAnswered(undefined, ({ isNoText }) => isNoText));

test("callers are told where a text is none", () =>
  expectCallersAnswered(undefined, ({ in: place, isNoText }) => isNoText && place !== "body"));
