import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { openReasoningSeal, type SealKey } from "../../src/seal/reasoning-seal.ts";

const key = (id: string, fill: number): SealKey => ({ id, secret: new Uint8Array(32).fill(fill) });
const ring = [key("k1", 1), key("k2", 2)];
const seal = openReasoningSeal(ring, "acct_a");

describe("sealed reasoning", () => {
  it("comes back as it was, and differs every time it is sealed", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        const sealed = seal.seal(text);
        expect(seal.unseal(sealed)).toBe(text);
        expect(seal.seal(text)).not.toBe(sealed);
        if (text.length > 3) expect(sealed).not.toContain(text);
      }),
    );
  });

  it("does not open after any change of one character", () => {
    const sealed = seal.seal("The answer is 42.");
    for (let at = 0; at < sealed.length; at += 1) {
      const other = sealed[at] === "A" ? "B" : "A";
      expect(seal.unseal(sealed.slice(0, at) + other + sealed.slice(at + 1))).toBeNull();
    }
    for (const nonsense of ["", ".", "t1s.k1.", "t1s.k1", `${sealed}.x`, sealed.slice(0, -3)])
      expect(seal.unseal(nonsense)).toBeNull();
  });

  it("opens only as it was spelled, though base64 has spellings that decode alike", () => {
    const sealed = ["", "a", "ab", "abc"].map((text) => seal.seal(text));
    const signer = seal.openSigner();
    const signature = signer.finish();
    // The tag's last digit carries bits that no byte has, for two of three lengths.
    const respelled = [...sealed, signature].flatMap((text) => [
      ...["A", "B", "C", "D", "E", "x", "_"].map((digit) => text.slice(0, -1) + digit),
      `${text}=`,
      `${text}==`,
      `${text}!`,
      `${text.slice(0, -4)} ${text.slice(-4)}`,
      text.replaceAll("_", "/").replaceAll("-", "+"),
    ]);
    const others = respelled.filter((text) => text !== signature && !sealed.includes(text));
    const decoded = (text: string): string =>
      Buffer.from(text.split(".")[2] ?? "", "base64url").toString("hex");
    const all = [...sealed, signature];
    const alike = others.filter((text) => all.some((one) => decoded(one) === decoded(text)));
    expect(alike.length).toBeGreaterThan(10);
    for (const text of others)
      expect([seal.unseal(text), seal.verify("", text)]).toEqual([null, false]);
  });

  it("does not open for another account, nor without its key", () => {
    const sealed = seal.seal("secret");
    expect(openReasoningSeal(ring, "acct_b").unseal(sealed)).toBeNull();
    expect(openReasoningSeal([key("k1", 1)], "acct_a").unseal(sealed)).toBeNull();
    expect(openReasoningSeal([key("k2", 9)], "acct_a").unseal(sealed)).toBeNull();
  });

  it("opens after a rotation, which seals with the new key", () => {
    const old = openReasoningSeal([key("k1", 1)], "acct_a").seal("kept");
    expect(seal.unseal(old)).toBe("kept");
    expect(seal.seal("x")).toMatch(/^t1s\.k2\./);
  });
});

describe("signed reasoning", () => {
  it("verifies however the text was cut, surrogate pairs too", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        fc.array(fc.nat(40), { maxLength: 6 }),
        (text, cuts) => {
          const signer = seal.openSigner();
          let at = 0;
          for (const size of cuts) {
            signer.update(text.slice(at, at + size));
            at += size;
          }
          signer.update(text.slice(at));
          const signature = signer.finish();
          expect(seal.verify(text, signature)).toBe(true);
          expect(seal.verify(`${text}.`, signature)).toBe(false);
        },
      ),
    );
  });

  it("does not verify for another account, another kind or nonsense", () => {
    const signer = seal.openSigner();
    signer.update("thought");
    const signature = signer.finish();
    expect(openReasoningSeal(ring, "acct_b").verify("thought", signature)).toBe(false);
    expect(seal.verify("thought", seal.seal("thought"))).toBe(false);
    expect(seal.unseal(signature)).toBeNull();
    expect(seal.verify("thought", "")).toBe(false);
  });
});
