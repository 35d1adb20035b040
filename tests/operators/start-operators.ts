import type { OperatorRole } from "../../src/ledger/administration/operator-administration.ts";
import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import type { StoreLedger } from "../../src/ledger/store-ledger.ts";
import type { CertificateFiles } from "../../src/network/certificate.ts";
import { listenForOperators } from "../../src/operators/operator-server.ts";
import type { WatchedService } from "../../src/operators/watched-service.ts";
import type { Timers } from "../../src/timers.ts";
import { unwatchedService } from "./unwatched-service.ts";
import { inspectWith } from "../wire/watch-answers.ts";
import { openOperatorsAnswerCheck } from "./check-operator-answer.ts";
import { openLedgerHere } from "../ledger/ledger-here.ts";
import { makeLedger } from "../ledger/made-ledger.ts";
import { orderOf, settlementOf } from "../ledger/orders.ts";
import { defaultSettings, temporaryLedger } from "../ledger/support.ts";

/** What a request of an operator may have. */
export interface AskInit {
  readonly method?: string;
  readonly body?: unknown;
  readonly token?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An answer of the API, read. */
export interface Asked {
  readonly status: number;
  readonly type: string | null;
  readonly json: Record<string, unknown>;
  readonly headers: Headers;
}

/** The listener for operators over a ledger of its own. */
export interface TestOperators extends AsyncDisposable {
  readonly url: string;
  readonly ledger: StoreLedger;
  readonly failures: readonly unknown[];
  /** Of the owner. */
  readonly token: string;
  /** The token of a new operator with this role. */
  newToken(role: OperatorRole): Promise<{ readonly id: string; readonly token: string }>;
  /** Signs in as the console does. */
  signIn(body: object, init?: AskInit): Promise<Asked & { readonly cookie: string }>;
  /** Asks as the owner, unless another token is given. */
  ask(path: string, init?: AskInit): Promise<Asked>;
}

/** Starts the listener on a free loopback port; `now`: the ledger's clock, where it is not the machine's. */
export async function startOperators({
  now = Date.now,
  timers,
  tls = null,
  open: openLedger,
  ...service
}: Partial<WatchedService> & {
  readonly now?: () => number;
  readonly timers?: Timers;
  readonly tls?: CertificateFiles | null;
  /** Another ledger than a file of its own. */
  readonly open?: () => Promise<StoreLedger>;
} = {}): Promise<TestOperators> {
  inspectWith(openOperatorsAnswerCheck);
  await using opened = new AsyncDisposableStack();
  const file = opened.use(temporaryLedger());
  makeLedger(file.path);
  const settings = { ...defaultSettings, path: file.path };
  const parts = { now, actor: "user:test" } as const;
  const ledger = opened.use((await openLedger?.()) ?? openLedgerHere(settings, parts));
  const served = opened.use((await openLedger?.()) ?? (await openSqliteLedger(settings, parts)));
  const failures: unknown[] = [];
  const server = opened.use(
    await listenForOperators(
      { host: "127.0.0.1", port: 0, spare: true, publicUrl: "https://operators.example", tls },
      {
        ledger: () => Promise.resolve(served),
        service: unwatchedService({ verify: () => served.verify([]), ...service }),
        metrics: () => Promise.resolve(Buffer.from("# metrics\n")),
        page: (request, response) => {
          const isPage = request.url === "/";
          if (isPage) response.end("page");
          return Promise.resolve(isPage);
        },
        version: "1.2.3",
        prices: defaultSettings.prices,
        privateAddresses: "refuse",
        clientOf: () => "127.0.0.1",
        telemetry: { certificateUsed() {}, lifecycle() {} },
        ...(timers === undefined ? {} : { timers }),
        onFailure: ({ cause }) => void failures.push(cause),
      },
    ),
  );
  let operators = 0;
  const newToken: TestOperators["newToken"] = async (role) => {
    operators += 1;
    const name = `operator ${String(operators)}`;
    const { record, secret } = await ledger.createOperator({ name, role, expiresAtMs: null });
    return { id: record.id, token: secret };
  };
  const owner = await newToken("owner");
  const owned = opened.move();
  return {
    url: server.url,
    ledger,
    failures,
    token: owner.token,
    newToken,
    async signIn(body, init = {}) {
      const headers = { origin: server.url, ...init.headers };
      const asked = await ask(`${server.url}/api/v1/session`, { body, ...init, headers });
      const [cookie = ""] = asked.headers.getSetCookie().map((one) => one.split(";")[0] ?? "");
      return { ...asked, cookie };
    },
    ask: (path, init = {}) => ask(server.url + path, { token: owner.token, ...init }),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function ask(url: string, { body, headers, method, token }: AskInit): Promise<Asked> {
  const response = await fetch(url, {
    method: method ?? (body === undefined ? "GET" : "POST"),
    headers: {
      ...(token === null || token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const type = response.headers.get("content-type");
  // A stream goes on until it is left.
  if (type === "text/event-stream") await response.body?.cancel();
  return {
    status: response.status,
    type,
    headers: response.headers,
    json: (type === "text/event-stream" ? {} : await response.json()) as Record<string, unknown>,
  };
}

/** So many requests of a new account that have ended, and one that runs; returns the account's id. */
export async function serveRequests(ledger: StoreLedger, count: number): Promise<string> {
  const account = await ledger.createAccount("served", 10n ** 12n);
  const { secret } = await ledger.createKey(account.id, "key");
  for (let request = 0; request <= count; request += 1) {
    const order = orderOf(await ledger.authorize(secret, true), {
      requestId: `req_${account.id.slice(5)}x${String(request)}`,
    });
    await ledger.admit(order);
    if (request < count) await ledger.settle(settlementOf(order));
  }
  return account.id;
}
