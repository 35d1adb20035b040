import { failureKinds } from "../failure.ts";

/** Values that labels take, whatever happens: their series begin at 0, as the first event would else be hidden from rate(). */
export const knownLabels = {
  code: Object.keys(failureKinds),
  format: ["chat-completions", "responses", "messages"],
  streamed: ["false", "true"],
  outcome: [
    "completed",
    "cancelled",
    "cancelled-before-output",
    "refused",
    "failed",
    "cancelled-by-operator",
    "lease-lost",
  ],
  operation: ["settle", "renew", "expire"],
  step: ["authorize", "admit", "settle"],
  event: [
    "account.low_balance",
    "account.exhausted",
    "account.credited",
    "budget.reached",
    "key.expiring",
    "verify.failed",
    "deployment.down",
    "deployment.up",
  ],
  /** What engines refuse with. */
  status: ["400", "401", "403", "404", "413", "422", "429"],
} as const satisfies Record<string, readonly string[]>;

/** Every combination of the known values of some labels. */
export function combineLabels<Label extends keyof typeof knownLabels>(
  ...labels: readonly Label[]
): readonly Readonly<Record<Label, string>>[] {
  return labels.reduce<readonly Readonly<Record<string, string>>[]>(
    (combined, label) =>
      combined.flatMap((row) => knownLabels[label].map((value) => ({ ...row, [label]: value }))),
    [{}],
  );
}
