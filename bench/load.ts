import { Agent, request as openRequest } from "node:http";
import type { Arm } from "./arms.ts";
import { type MockOrder, stampNanos, stampPattern } from "./wire.ts";

/** What one streamed request saw. Times in milliseconds. */
export interface StreamResult {
  /** From the request to its first content. */
  readonly firstMs: number;
  /** From the mock's write to our read, a figure a chunk. */
  readonly delaysMs: readonly number[];
}

/** Connections are kept, as every SDK keeps them. */
export function openAgent(): Agent {
  return new Agent({ keepAlive: true, maxSockets: 256 });
}

/** The bytes of a request, made beforehand: a large one would hold up the load generator itself. */
export function buildBody(order: MockOrder, ballast: string | null = null): Buffer {
  const messages = [
    ...(ballast === null ? [] : [{ role: "user", content: ballast }]),
    { role: "user", content: JSON.stringify(order) },
  ];
  return Buffer.from(JSON.stringify({ model: "service-llm", stream: true, messages }));
}

/** Runs one streamed request to its end. `measure` is off in bursts, where parsing stamps would be the load. */
export function runStream(
  arm: Arm,
  body: Buffer,
  parts: { readonly agent: Agent; readonly measure: boolean },
): Promise<StreamResult> {
  const delaysMs: number[] = [];
  let firstMs = 0;
  let bytes = 0;
  let tail = "";
  const startMs = performance.now();

  function read(chunk: Buffer): void {
    bytes += chunk.byteLength;
    if (!parts.measure) {
      tail =
        chunk.byteLength > 64
          ? chunk.toString("latin1", chunk.byteLength - 64)
          : tail + chunk.toString("latin1");
      return;
    }
    const now = stampNanos();
    const text = tail + chunk.toString("latin1");
    let end = 0;
    for (const match of text.matchAll(stampPattern)) {
      if (firstMs === 0) firstMs = performance.now() - startMs;
      delaysMs.push(Number(now - BigInt(match[1] ?? "0")) / 1e6);
      end = match.index + match[0].length;
    }
    tail = text.slice(Math.max(end, text.length - 64));
  }

  return new Promise((resolve, reject) => {
    const outgoing = openRequest(
      arm.url,
      {
        method: "POST",
        agent: parts.agent,
        headers: {
          "content-type": "application/json",
          "content-length": body.byteLength,
          ...(arm.key === "" ? {} : { authorization: `Bearer ${arm.key}` }),
        },
      },
      (response) => {
        response.on("data", read);
        response.on("end", () => {
          if (response.statusCode !== 200 || !tail.includes("[DONE]"))
            reject(
              new Error(
                `${arm.name} answered ${String(response.statusCode)} with ${String(bytes)} bytes: ${tail}`,
              ),
            );
          else resolve({ firstMs, delaysMs });
        });
        response.on("error", (error) =>
          reject(new Error(`${arm.name} broke off after ${String(bytes)} bytes`, { cause: error })),
        );
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}

/** The value below which `share` of the sample lies. */
export function percentile(sample: readonly number[], share: number): number {
  const sorted = sample.toSorted((left, right) => left - right);
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
}
