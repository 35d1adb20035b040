import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { parseApiKey } from "../../src/ledger/api-key.ts";
import { newApiKey, newLedgerId } from "../../src/ledger/new-api-key.ts";

describe("an API key", () => {
  test("names its account and itself, and has 43 random letters and digits", () => {
    const accountId = newLedgerId("acct_");
    const keyId = newLedgerId("key_");
    expect(accountId).toMatch(/^acct_[0-9A-Za-z]{15}$/);
    const { secret, secretHash } = newApiKey(accountId, keyId);
    const [prefix, account, key, random, ...rest] = secret.split("_");
    expect([prefix, `acct_${account}`, `key_${key}`]).toEqual(["trib", accountId, keyId]);
    expect(random).toMatch(/^[0-9A-Za-z]{43}$/);
    expect(rest).toEqual([]);
    expect(Buffer.from(secretHash)).toEqual(createHash("sha256").update(secret).digest());
    expect(parseApiKey(secret)).toEqual({ accountId, keyId, secretHash });
  });

  test("is never made twice", () => {
    const made = Array.from({ length: 200 }, () => newApiKey("acct_a", "key_b").secret);
    expect(new Set(made).size).toBe(200);
  });

  const random = "A".repeat(43);
  test.each([
    "",
    "trib_",
    `trib_a_b_${random.slice(1)}`,
    `trib_a_b_${random}A`,
    `trib_a_b_${random}\n`,
    ` trib_a_b_${random}`,
    `trib__b_${random}`,
    `trib_a_${random}`,
    `trib_a_b_c_${random}`,
    `trib_a-b_c_${random}`,
    `TRIB_a_b_${random}`,
    `sk-${random}`,
    `trib_${"a".repeat(33)}_b_${random}`,
    "trib_a_b_" + "é".repeat(43),
    "x".repeat(1_000_000),
  ])("%# is no key", (text) => {
    expect(parseApiKey(text)).toBeNull();
  });
});
