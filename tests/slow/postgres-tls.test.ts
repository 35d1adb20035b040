import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openPostgresLedger } from "../../src/ledger/postgres/postgres-ledger.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import { makeCertificate } from "../doubles/make-certificate.ts";
import {
  execute,
  type PostgresServer,
  postgresTests,
  startPostgres,
} from "../ledger/postgres-server.ts";
import { defaultSettings } from "../ledger/support.ts";

// PostgreSQL behind an authority of its own, which lets in only whoever shows a certificate that names the user.

const authority = makeCertificate({ name: "authority.test" });
const folder = mkdtempSync(join(tmpdir(), "tributary-postgres-tls-"));
const file = (name: string): string => join(folder, name);
let server: PostgresServer;
let port = 0;

function show(name: string): void {
  const { cert, key } = makeCertificate({ name, by: authority });
  writeFileSync(file("cert.pem"), cert);
  writeFileSync(file("key.pem"), key);
}

function address(parameters: Readonly<Record<string, string>>): string {
  return `postgres://ledger@127.0.0.1:${String(port)}/books?${new URLSearchParams(parameters).toString()}`;
}

const verified = { sslmode: "verify-full", sslrootcert: file("ca.pem") };
const known = { ...verified, sslcert: file("cert.pem"), sslkey: file("key.pem") };

function open(url: string): Promise<StoreLedger> {
  return openPostgresLedger({ url, ...defaultSettings }, { serves: true });
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const address = probe.address();
  probe.close();
  await once(probe, "close");
  return typeof address === "object" ? (address?.port ?? 0) : 0;
}

describe.skipIf(!postgresTests)("PostgreSQL under TLS", () => {
  beforeAll(async () => {
    port = await freePort();
    writeFileSync(file("ca.pem"), authority.cert);
    show("ledger");
    server = await startPostgres({
      port,
      more(data, own) {
        const made = makeCertificate({ name: "db.test", by: authority });
        const files = {
          "server.crt": made.cert,
          "server.key": made.key,
          "root.crt": authority.cert,
        };
        for (const [name, text] of Object.entries(files)) {
          writeFileSync(join(data, name), text);
          chmodSync(join(data, name), 0o600);
          own(join(data, name));
        }
        writeFileSync(
          join(data, "pg_hba.conf"),
          "local all all trust\nhostssl all all 127.0.0.1/32 cert\n",
        );
        return {
          ssl: "on",
          ssl_cert_file: "server.crt",
          ssl_key_file: "server.key",
          ssl_ca_file: "root.crt",
        };
      },
    });
    await server.createDatabase("books");
  });
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });

  it("is used by every connection of the ledger, with the certificate that is in the file now", async () => {
    await using ledger = await open(address(known));
    const account = await ledger.createAccount("first", 10n ** 9n);
    await ledger.createKey(account.id, "key");
    expect((await ledger.verify([])).ok).toBe(true);
    const connections = await execute(
      server.url("books"),
      "select ssl, client_dn from pg_stat_ssl join pg_stat_activity using (pid) where application_name = 'tributary'",
    );
    expect(connections.length).toBeGreaterThan(1);
    expect(connections).toEqual(connections.map(() => ({ ssl: true, client_dn: "/CN=ledger" })));
    // Another name than the user's: the next connection is refused.
    show("other");
    await expect(open(address(known))).rejects.toThrow(/certificate authentication failed|28000/);
    show("ledger");
  });

  it("is refused where the authority is not the one of the address, and without a certificate of the service", async () => {
    writeFileSync(file("other.pem"), makeCertificate({ name: "other.test" }).cert);
    const other = { ...known, sslrootcert: file("other.pem") };
    await expect(open(address(other))).rejects.toThrow(/certificate|unable to/i);
    await expect(open(address(verified))).rejects.toThrow(/certificate/);
    await expect(open(address({ sslmode: "disable" }))).rejects.toThrow(/pg_hba|encryption/);
  });
});
