import { setTimeout as sleep } from "node:timers/promises";
import { Agent, request } from "undici";
import { formats } from "../service/start-service.ts";
import { replicaHeader } from "./nginx.ts";

/** What a client saw of one request. */
export interface Asked {
  /** What came instead of an answer to its end; null: that came. */
  readonly failure: string | null;
  /** null: no answer began. */
  readonly status: number | null;
  /** By the answer's own header; null: it is not the service's. */
  readonly requestId: string | null;
  /** The address of the replica that the proxy asked last; null: no answer began. */
  readonly replica: string | null;
}

/** What clients saw. */
export interface LoadReport {
  /** Requests that were sent. */
  readonly sent: number;
  /** Those of them that were answered to their end, by the ids that answers have. */
  readonly done: readonly string[];
  /** What came instead. */
  readonly failures: readonly (Asked & { readonly failure: string })[];
}

/** Clients that ask all the time. */
export interface Load {
  readonly report: LoadReport;
  /** Sends nothing more; resolves when what runs has ended. */
  stop(): Promise<LoadReport>;
}

/** Who asks how much, and where. */
export interface LoadOrder {
  /** The socket of the proxy. */
  readonly socketPath: string;
  readonly keys: readonly string[];
  readonly requestsPerSecond: number;
  /** Streams that are open at any time. */
  readonly streams: number;
}

/** The word by which the deployment knows that an answer is to be long. */
export const longWord = "at-length";

const ends = {
  "chat-completions": "data: [DONE]\n\n",
  responses: "event: response.completed\n",
  messages: "event: message_stop\n",
} as const;

/** Begins to ask; every client is what a program without an SDK would be, and repeats nothing. */
export function startLoad(order: LoadOrder): Load {
  const agent = new Agent({ connect: { socketPath: order.socketPath } });
  const failures: (Asked & { readonly failure: string })[] = [];
  const done: string[] = [];
  const under = new Set<Promise<void>>();
  let sent = 0;
  const stopped = new AbortController();

  async function one(long: boolean): Promise<void> {
    const index = sent;
    sent += 1;
    const key = order.keys[index % order.keys.length] ?? "";
    const asked = await ask(agent, { index, key, long });
    const { failure } = asked;
    if (failure === null) done.push(asked.requestId ?? "an answer without an id");
    else failures.push({ ...asked, failure });
  }
  function begin(work: () => Promise<void>): void {
    const running = work().finally(() => under.delete(running));
    under.add(running);
  }
  for (let stream = 0; stream < order.streams; stream += 1)
    begin(async () => {
      while (!stopped.signal.aborted) await one(true);
    });
  const timer = setInterval(() => begin(() => one(false)), 1_000 / order.requestsPerSecond);
  const report = (): LoadReport => ({ sent, done, failures });
  return {
    get report() {
      return report();
    },
    async stop() {
      stopped.abort();
      clearInterval(timer);
      while (under.size > 0) await Promise.all(under);
      await agent.close();
      return report();
    },
  };
}

/** One request. */
export async function ask(
  agent: Agent,
  parts: { readonly index: number; readonly key: string; readonly long: boolean },
): Promise<Asked> {
  const { index, key, long } = parts;
  const format = formats[index % formats.length] ?? formats[0];
  const stream = long || index % 2 === 0;
  const text = JSON.stringify(format.body).replace("Hi", long ? longWord : "short");
  const name = `${format.name}${stream ? ", streamed" : ""}`;
  let begun: Pick<Asked, "replica" | "requestId" | "status"> = {
    status: null,
    requestId: null,
    replica: null,
  };
  const failed = (failure: string): Asked => ({ ...begun, failure: `${name}: ${failure}` });
  try {
    const answer = await request(`http://llm.example.org${format.path}`, {
      method: "POST",
      dispatcher: agent,
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: `${text.slice(0, -1)},"stream":${String(stream)}}`,
    });
    const { headers, statusCode: status } = answer;
    begun = {
      status,
      requestId: lastOf(headers["x-request-id"]),
      replica: lastOf(headers[replicaHeader]),
    };
    const body = await answer.body.text();
    if (status !== 200) throw new Error(`${String(status)} ${body.slice(0, 300)}`);
    if (stream && !body.includes(ends[format.name])) return failed(`it ends ${body.slice(-300)}`);
    return { ...begun, failure: null };
  } catch (error) {
    // Not faster than a client that waits a little before it goes on.
    await sleep(100);
    return failed(error instanceof Error ? error.message : String(error));
  }
}

/** The proxy names all replicas that it tried. */
function lastOf(header: string | readonly string[] | undefined): string | null {
  return header === undefined ? null : (String(header).split(", ").at(-1) ?? null);
}
