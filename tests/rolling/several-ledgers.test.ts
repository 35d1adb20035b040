import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Agent, request } from "undici";
import { expect, it } from "vitest";
import { newApiKey } from "../../src/ledger/new-api-key.ts";
import { readDocument } from "../documents/tables.ts";
import { findNginx, runNginx } from "./nginx.ts";

/** A server that answers with the name of a ledger. */
async function openLedgerNamed(name: string, opened: AsyncDisposableStack): Promise<number> {
  const server = createServer((_request, response) => response.end(name));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  opened.defer(() => void server.close());
  return (server.address() as AddressInfo).port;
}

it.skipIf(findNginx() === null)(
  "nginx chooses the ledger by the account that a key names, as docs/several-ledgers.md says",
  async () => {
    await using opened = new AsyncDisposableStack();
    const [, lines = ""] =
      /```nginx\n([^]*?)```/.exec(readDocument("docs/several-ledgers.md")) ?? [];
    const [, pass = ""] = /# In `location \/`: (proxy_pass .*;)/.exec(lines) ?? [];
    const [, elsewhere = ""] = /^ +(\w+) second;$/m.exec(lines) ?? [];
    const upstreams: string[] = [];
    for (const name of ["first", "second"]) {
      const port = await openLedgerNamed(name, opened);
      upstreams.push(`upstream ${name} { server 127.0.0.1:${String(port)}; }`);
    }
    const nginx = opened.use(
      await runNginx((socketPath) =>
        [...upstreams, lines, `server { listen unix:${socketPath}; location / { ${pass} } }`].join(
          "\n",
        ),
      ),
    );
    const agent = new Agent({ connect: { socketPath: nginx.socketPath } });
    opened.defer(() => agent.close());
    const ask = async (headers: Readonly<Record<string, string>>): Promise<string> =>
      (
        await request("http://llm.example.org/v1/messages", { dispatcher: agent, headers })
      ).body.text();
    const keyOf = (account: string): string => newApiKey(`acct_${account}`, "key_b1").secret;
    expect(await ask({ authorization: `Bearer ${keyOf(elsewhere)}` })).toBe("second");
    expect(await ask({ "x-api-key": keyOf(elsewhere) })).toBe("second");
    expect(await ask({ authorization: `Bearer ${keyOf("a0")}` })).toBe("first");
    expect(await ask({})).toBe("first");
  },
);
