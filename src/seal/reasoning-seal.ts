import {
  createCipheriv,
  createDecipheriv,
  createHash,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from "node:crypto";

/** One key of the ring: 32 random bytes under a short id of letters and digits. */
export interface SealKey {
  readonly id: string;
  readonly secret: Uint8Array;
}

/** Signs a text that arrives in pieces, in constant memory. */
export interface TextSigner {
  update(text: string): void;
  /** The signature of everything so far; the signer is used up. */
  finish(): string;
}

/** Lets reasoning travel through a client and come back only as it was, only to the account it was made for. */
export interface ReasoningSeal {
  /** AES-256-GCM; the result says nothing about the text but its length. */
  seal(text: string): string;
  /** The text, or null for anything that was not sealed for this account by a key of the ring. */
  unseal(sealed: string): string | null;
  openSigner(): TextSigner;
  verify(text: string, signature: string): boolean;
}

const version = "t1";
const nonceBytes = 12;
const tagBytes = 16;

/**
 * The seal of one account. The last key of the ring seals; every key of it unseals, so that keys can be rotated
 * without ending running sessions.
 */
export function openReasoningSeal(ring: readonly SealKey[], accountId: string): ReasoningSeal {
  const current = ring.at(-1);
  if (current === undefined) throw new Error("a reasoning seal needs at least one key");

  return {
    seal(text) {
      const nonce = randomBytes(nonceBytes);
      const cipher = createCipheriv("aes-256-gcm", derive(current, "seal"), nonce);
      cipher.setAAD(boundTo(accountId, current.id));
      const sealed = Buffer.concat([nonce, cipher.update(text, "utf8"), cipher.final()]);
      return join("s", current.id, Buffer.concat([sealed, cipher.getAuthTag()]));
    },
    unseal(sealed) {
      const opened = split("s", sealed, ring);
      if (opened === null || opened.bytes.length < nonceBytes + tagBytes) return null;
      const { key, bytes } = opened;
      const decipher = createDecipheriv(
        "aes-256-gcm",
        derive(key, "seal"),
        bytes.subarray(0, nonceBytes),
        { authTagLength: tagBytes },
      );
      decipher.setAAD(boundTo(accountId, key.id));
      decipher.setAuthTag(bytes.subarray(-tagBytes));
      try {
        const text = decipher.update(bytes.subarray(nonceBytes, -tagBytes));
        return Buffer.concat([text, decipher.final()]).toString("utf8");
      } catch {
        // A wrong tag is the expected answer for what was changed or belongs to another account.
        return null;
      }
    },
    openSigner: () => openSigner(current, accountId),
    verify(text, signature) {
      const opened = split("g", signature, ring);
      if (opened === null) return false;
      const expected = signatureOf(opened.key, accountId, createHash("sha256").update(text));
      return expected.length === opened.bytes.length && timingSafeEqual(expected, opened.bytes);
    },
  };
}

function openSigner(key: SealKey, accountId: string): TextSigner {
  const hash = createHash("sha256");
  // A surrogate pair cut between two pieces would be hashed as two replacement characters.
  let carried = "";
  return {
    update(text) {
      const whole = carried + text;
      const last = whole.charCodeAt(whole.length - 1);
      const cut = last >= 0xd800 && last <= 0xdbff ? whole.length - 1 : whole.length;
      carried = whole.slice(cut);
      hash.update(whole.slice(0, cut));
    },
    finish() {
      hash.update(carried);
      return join("g", key.id, signatureOf(key, accountId, hash));
    },
  };
}

function signatureOf(
  key: SealKey,
  accountId: string,
  hash: ReturnType<typeof createHash>,
): Uint8Array {
  return createHmac("sha256", derive(key, "sign"))
    .update(boundTo(accountId, key.id))
    .update(hash.digest())
    .digest();
}

function derive(key: SealKey, purpose: "seal" | "sign"): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", key.secret, "", `tributary reasoning ${purpose}`, 32));
}

function boundTo(accountId: string, keyId: string): Uint8Array {
  return Buffer.from(`${version}\n${keyId}\n${accountId}\n`);
}

function join(kind: "s" | "g", keyId: string, bytes: Uint8Array): string {
  return `${version}${kind}.${keyId}.${Buffer.from(bytes).toString("base64url")}`;
}

function split(
  kind: "s" | "g",
  text: string,
  ring: readonly SealKey[],
): { readonly key: SealKey; readonly bytes: Buffer } | null {
  const [head, keyId, encoded, ...rest] = text.split(".", 4);
  if (head !== version + kind || encoded === undefined || rest.length > 0) return null;
  const key = ring.find((candidate) => candidate.id === keyId);
  const bytes = Buffer.from(encoded, "base64url");
  // Several base64 texts decode to the same bytes; only the one that `join` made is accepted.
  if (key === undefined || bytes.toString("base64url") !== encoded) return null;
  return { key, bytes };
}
