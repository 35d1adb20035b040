import type {
  AnswerContext,
  ReasoningVerifier,
  ReasoningSigner,
} from "../../src/formats/wire-format.ts";

/** A seal that a reader of the cases can check by eye. */
export const testReasoning: ReasoningVerifier & ReasoningSigner = {
  seal: (text) => `sealed:${text}`,
  unseal: (sealed) => (sealed.startsWith("sealed:") ? sealed.slice(7) : null),
  verify: (text, signature) => signature === `signed:${text}`,
  openSigner() {
    const pieces: string[] = [];
    return {
      update: (text) => void pieces.push(text),
      finish: () => `signed:${pieces.join("")}`,
    };
  },
};

/** When every answer of the cases was created, in milliseconds since 1970. */
export const createdAtMs = 1_700_000_000_000;

/** A context in which nothing is left to chance: ids count up by prefix, the clock stands 2.5 s later. */
export function openContext<Echo>(echo: Echo): AnswerContext<Echo> {
  const issued = new Map<string, number>();
  return {
    createdAtMs,
    echo,
    inputTokensEstimate: 11,
    outputTokensMax: 4096,
    newId(prefix) {
      const number = (issued.get(prefix) ?? 0) + 1;
      issued.set(prefix, number);
      return `${prefix}${number}`;
    },
    now: () => createdAtMs + 2_500,
    reasoning: testReasoning,
    requestId: "req_1",
  };
}
