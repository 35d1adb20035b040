import type { Prices } from "../../src/admission/price.ts";
import { drawOrder, expectedCharge, type SoakOrder } from "./orders.ts";
import type { Replica } from "./replica.ts";

/** What a client knows of one request when it is over. */
export interface Outcome {
  /** null: no header of an answer ever came. */
  readonly requestId: string | null;
  readonly accountId: string;
  readonly status: number;
  /** Charge in nanos by the billing rule. */
  readonly expected: bigint;
  /** Whether something was done to its replica or to the database meanwhile: then it may have cost nothing as well. */
  readonly uncertain: boolean;
}

/** An account to spend from. */
export interface SoakAccount {
  readonly accountId: string;
  readonly creditNanos: bigint;
  readonly key: string;
}

const formats = [
  {
    path: "/v1/chat/completions",
    build: (text: string, stream: boolean) => ({
      messages: [{ role: "user", content: text }],
      stream,
    }),
    limit: "max_tokens",
  },
  {
    path: "/v1/responses",
    build: (text: string, stream: boolean) => ({ input: text, stream }),
    limit: "max_output_tokens",
  },
  {
    path: "/v1/messages",
    build: (text: string, stream: boolean) => ({
      messages: [{ role: "user", content: text }],
      stream,
    }),
    limit: "max_tokens",
  },
] as const;

const terminals = /data: \[DONE\]|event: response\.completed|event: message_stop/;

/** One request of the mix, from its drawing to its outcome. Never rejects. */
export async function runRequest(parts: {
  readonly next: () => number;
  readonly account: SoakAccount;
  readonly replica: Replica;
  /** Counts what was done to the database. */
  readonly disturbances: () => number;
  readonly prices: Prices;
}): Promise<Outcome> {
  const { next, account, replica } = parts;
  const order = drawOrder(next);
  const format = formats[Math.floor(next() * formats.length)] ?? formats[0];
  const streamed = order.kind === "leave" || next() < 0.7;
  const body = JSON.stringify({
    ...format.build(JSON.stringify(order), streamed),
    // Small enough that the credit lasts, large enough for every order.
    [format.limit]: 64,
  });
  const before = replica.disturbances + parts.disturbances();
  const seen = await send(replica.url + format.path, body, { order, key: account.key });
  const refused = seen.status >= 400 && order.kind !== "refuse" && order.kind !== "fail";
  const expected = expectedCharge(order, Buffer.byteLength(body), parts.prices);
  return {
    requestId: seen.requestId,
    accountId: account.accountId,
    status: seen.status,
    expected: refused ? 0n : expected,
    uncertain: replica.disturbances + parts.disturbances() !== before || !seen.asOrdered,
  };
}

interface Seen {
  readonly requestId: string | null;
  readonly status: number;
  /** Whether the answer was whole, left or failed as the order says. */
  readonly asOrdered: boolean;
}

async function send(
  url: string,
  body: string,
  parts: { readonly order: SoakOrder; readonly key: string },
): Promise<Seen> {
  const controller = new AbortController();
  // A frozen replica answers nothing, and no client waits for ever.
  const timer = setTimeout(() => controller.abort(), 20_000);
  let requestId: string | null = null;
  let status = 0;
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${parts.key}` },
      body,
      signal: controller.signal,
    });
    requestId = response.headers.get("x-request-id");
    ({ status } = response);
    const text = await read(response, parts.order, controller);
    return { requestId, status, asOrdered: isAsOrdered(parts.order, status, text) };
  } catch {
    return { requestId, status, asOrdered: false };
  } finally {
    clearTimeout(timer);
  }
}

/** Reads to the end, or until the last piece of an answer that is to be left. */
async function read(
  response: Response,
  order: SoakOrder,
  controller: AbortController,
): Promise<string> {
  const decoder = new TextDecoder();
  const last = `${String(order.pieces - 1)},`;
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (order.kind !== "leave" || response.status !== 200 || !text.includes(`"${last}"`)) continue;
    controller.abort();
    break;
  }
  return text;
}

function isAsOrdered(order: SoakOrder, status: number, text: string): boolean {
  // 402 and 429 come before anything is reserved, whatever was ordered.
  if (status === 402 || status === 429) return true;
  switch (order.kind) {
    case "complete":
      return status === 200 && (terminals.test(text) || text.trimEnd().endsWith("}"));
    case "leave":
      return status === 200 && text.includes(`"${String(order.pieces - 1)},"`);
    case "fail":
      return status === 502 || (status === 200 && !terminals.test(text));
    case "refuse":
      return status === 400;
    default:
      return order.kind satisfies never;
  }
}
