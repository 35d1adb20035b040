import { createHmac } from "node:crypto";

/** What is signed: the event's id, when it is sent, and the body as it is sent. */
export interface SignedEvent {
  readonly id: string;
  /** Milliseconds since 1970. */
  readonly sentAtMs: number;
  readonly body: string;
}

/** The headers of Standard Webhooks: a signature for each secret, the newest first. */
export function signatureHeaders(
  { body, id, sentAtMs }: SignedEvent,
  secrets: readonly Uint8Array[],
): Readonly<Record<"webhook-id" | "webhook-timestamp" | "webhook-signature", string>> {
  const timestamp = String(Math.floor(sentAtMs / 1_000));
  const signatures = secrets.map(
    (secret) =>
      `v1,${createHmac("sha256", secret).update(`${id}.${timestamp}.${body}`).digest("base64")}`,
  );
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": signatures.join(" "),
  };
}
