import { generateKeyPairSync, randomBytes, sign } from "node:crypto";

/** A certificate as PEM, and its key. */
export interface MadeCertificate {
  readonly cert: string;
  readonly key: string;
  readonly name: string;
}

/** What a certificate says. */
export interface CertificateOrder {
  /** Its subject, and its DNS name; `127.0.0.1` is in it as well. */
  readonly name: string;
  /** Who signs it; absent: itself, as one that may sign others. */
  readonly by?: MadeCertificate;
  readonly validToMs?: number;
}

const day = 86_400_000;

/** Makes a certificate of P-256 for a test, as RFC 5280 writes it. */
export function makeCertificate({ by, name, validToMs }: CertificateOrder): MadeCertificate {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = pem("PRIVATE KEY", privateKey.export({ type: "pkcs8", format: "der" }));
  const now = Date.now();
  const signed = sequence(
    tagged(0xa0, integer(Buffer.of(2))),
    integer(Buffer.concat([Buffer.of(1), randomBytes(8)])),
    algorithm,
    subject(by?.name ?? name),
    sequence(time(now - day), time(validToMs ?? now + 30 * day)),
    subject(name),
    publicKey.export({ type: "spki", format: "der" }),
    tagged(0xa3, sequence(...extensions(name, by === undefined))),
  );
  const signature = sign("sha256", signed, by?.key ?? key);
  const bits = tagged(0x03, Buffer.concat([Buffer.of(0), signature]));
  return { cert: pem("CERTIFICATE", sequence(signed, algorithm, bits)), key, name };
}

function extensions(name: string, isAuthority: boolean): readonly Buffer[] {
  const names = sequence(
    tagged(0x82, Buffer.from(name)),
    tagged(0x82, Buffer.from("localhost")),
    tagged(0x87, Buffer.of(127, 0, 0, 1)),
  );
  const constraint = isAuthority ? sequence(tagged(0x01, Buffer.of(0xff))) : sequence();
  return [
    // subjectAltName, basicConstraints.
    sequence(oid(0x55, 0x1d, 0x11), tagged(0x04, names)),
    sequence(oid(0x55, 0x1d, 0x13), tagged(0x04, constraint)),
  ];
}

// ecdsa-with-SHA256
const algorithm = sequence(oid(0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02));

function subject(name: string): Buffer {
  // commonName, as UTF-8.
  const attribute = sequence(oid(0x55, 0x04, 0x03), tagged(0x0c, Buffer.from(name)));
  return sequence(tagged(0x31, attribute));
}

function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replaceAll(/[-:T]|\.\d{3}/g, "");
  return tagged(0x18, Buffer.from(digits));
}

function integer(bytes: Buffer): Buffer {
  return tagged(0x02, bytes);
}

function oid(...bytes: readonly number[]): Buffer {
  return tagged(0x06, Buffer.from(bytes));
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts));
}

function tagged(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const size =
    length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.of(tag, ...size), content]);
}

function pem(label: string, bytes: Buffer): string {
  const lines = bytes.toString("base64").replaceAll(/.{64}/g, "$&\n");
  return `-----BEGIN ${label}-----\n${lines}\n-----END ${label}-----\n`;
}
