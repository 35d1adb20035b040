import { costNanos, type Prices } from "../../src/admission/price.ts";

/** What one request asks the soak's deployment to do; it travels as the text of its only message. */
export interface SoakOrder {
  readonly kind: "complete" | "leave" | "fail" | "refuse";
  /** Deltas before the end, or before the deployment falls silent. */
  readonly pieces: number;
  readonly pauseMs: number;
  readonly inputTokens: number;
}

/** The charge that the billing rule gives, in nanos, worked out from the order alone. */
export function expectedCharge(order: SoakOrder, bodyBytes: number, prices: Prices): bigint {
  switch (order.kind) {
    case "complete":
      return costNanos(order.inputTokens, order.pieces, prices);
    case "leave":
      // Input by the quick estimate, output by the pieces that had arrived: the deployment reported nothing.
      return costNanos(Math.ceil(bodyBytes / 4), order.pieces, prices);
    case "fail":
    case "refuse":
      return 0n;
    default:
      return order.kind satisfies never;
  }
}

/** A mix in which most answers are whole; `next` gives numbers from 0 to 1. */
export function drawOrder(next: () => number): SoakOrder {
  const draw = next();
  return {
    kind: draw < 0.7 ? "complete" : draw < 0.85 ? "leave" : draw < 0.95 ? "fail" : "refuse",
    pieces: 1 + Math.floor(next() * 30),
    pauseMs: Math.floor(next() * 15),
    inputTokens: 5 + Math.floor(next() * 40),
  };
}
