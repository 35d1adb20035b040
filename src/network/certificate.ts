import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { limits } from "../limits.ts";
import type { Timers } from "../timers.ts";

/** Where a certificate is, with the others of its chain behind it, and its private key; both as PEM. Paths are absolute. */
export interface CertificateFiles {
  readonly certificateFile: string;
  readonly keyFile: string;
}

/** A certificate and the key that belongs to it. */
export interface Certificate {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** When it ends, as an ISO time. */
  readonly validTo: string;
}

/** Files that are no certificate with its key; the message says what to do about it, and quotes none of them. */
export class CertificateError extends Error {
  override readonly name = "CertificateError";
}

/** Reads a pair and tries it, as a handshake would fail otherwise. Rejects with a CertificateError. */
export async function readCertificate(files: CertificateFiles): Promise<Certificate> {
  const [cert, key] = [await readPem(files.certificateFile), await readPem(files.keyFile)];
  const first = parse(() => new X509Certificate(cert));
  if (first === null)
    throw new CertificateError(
      `${files.certificateFile} does not begin with a certificate as PEM: write the service's own there, and those that lead to its root behind it`,
    );
  const privateKey = parse(() => createPrivateKey(key));
  if (privateKey === null)
    throw new CertificateError(
      `${files.keyFile} is no private key as PEM without a passphrase: write the key of the certificate there`,
    );
  if (!first.checkPrivateKey(privateKey))
    throw new CertificateError(
      `${files.keyFile} is not the key of the certificate in ${files.certificateFile}: put those two there that belong together`,
    );
  if (parse(() => createSecureContext({ cert, key })) === null)
    throw new CertificateError(
      `${files.certificateFile} cannot be used: see that each certificate of its chain is whole`,
    );
  return { cert, key, validTo: first.validToDate.toISOString() };
}

/** What watching works with. */
export interface CertificateWatchParts {
  readonly timers: Timers;
  /** Takes the new pair; what is open keeps the one that it has. */
  readonly use: (certificate: Certificate) => void;
  readonly telemetry: CertificateTelemetry;
}

/** Hears what becomes of a listener's certificate. */
export interface CertificateTelemetry {
  certificateUsed(facts: { readonly file: string; readonly validTo: string }): void;
  lifecycle(event: string, fields: Readonly<Record<string, string>>): void;
}

/**
 * Looks again and again whether the files hold another pair. Names of files are all that is watched: renewals replace files
 * or what links lead to, and what a system tells of changes differs with each way. Trouble is said once.
 */
export function watchCertificate(
  files: CertificateFiles,
  first: Certificate,
  { telemetry, timers, use }: CertificateWatchParts,
): Disposable {
  let current = first;
  let trouble = "";
  let closed = false;
  let timer: unknown;

  function tellUse(): { readonly file: string; readonly validTo: string } {
    const facts = { file: files.certificateFile, validTo: current.validTo };
    telemetry.certificateUsed(facts);
    return facts;
  }
  async function look(): Promise<void> {
    try {
      const found = await readCertificate(files);
      if (closed) return;
      trouble = "";
      if (found.cert.equals(current.cert) && found.key.equals(current.key)) return;
      use(found);
      current = found;
      telemetry.lifecycle("certificate loaded", tellUse());
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (closed || reason === trouble) return;
      trouble = reason;
      telemetry.lifecycle("certificate not loaded", { reason, validTo: current.validTo });
    }
  }
  function lookLater(): void {
    timer = timers.set(() => {
      void look().then(() => {
        if (!closed) lookLater();
      });
    }, limits.certificateLookMs);
  }
  tellUse();
  lookLater();
  return {
    [Symbol.dispose]() {
      closed = true;
      timers.clear(timer);
    },
  };
}

async function readPem(file: string): Promise<Buffer> {
  try {
    return await readFile(file);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "it is no file";
    throw new CertificateError(
      `${file} cannot be read (${code}): correct the path, or let this user read it`,
      { cause: error },
    );
  }
}

/** null: OpenSSL can make nothing of it; its own words name parts of its source. */
function parse<Value>(make: () => Value): Value | null {
  try {
    return make();
  } catch {
    return null;
  }
}
