import { readFileSync } from "node:fs";

/** Files by which the deployment is known, and this service to it; null: what Node trusts, and no certificate. Paths are absolute. */
export interface TlsFiles {
  /** Certificates, one of which has signed that of the deployment. */
  readonly caFile: string | null;
  readonly certificateFile: string | null;
  readonly keyFile: string | null;
}

/** What a connection under TLS is made with. */
export interface TlsOptions {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
}

/**
 * Returns what reads the files. They are read for each new connection, so that a renewed certificate is taken; where one of
 * them cannot be read, what was read last stands.
 */
export function openTlsFiles({ caFile, certificateFile, keyFile }: TlsFiles): () => TlsOptions {
  let last: TlsOptions = {};
  return () => {
    try {
      last = {
        ...(caFile === null ? {} : { ca: readFileSync(caFile) }),
        ...(certificateFile === null ? {} : { cert: readFileSync(certificateFile) }),
        ...(keyFile === null ? {} : { key: readFileSync(keyFile) }),
      };
    } catch {
      // The settings were checked at the start: a file is being replaced, or was taken away.
    }
    return last;
  };
}
