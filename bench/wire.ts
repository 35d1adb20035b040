// What the mock deployment and the load generator agree on.

/** What a request asks of the mock deployment, as JSON text in its only message. */
export interface MockOrder {
  readonly chunks: number;
  /** Milliseconds between chunks; 0: as fast as they are read. */
  readonly intervalMs: number;
  /** About how many bytes one write of a burst has; absent: those of 32 chunks. */
  readonly writeBytes?: number;
}

/** Nanoseconds of a clock that all processes of this machine share. */
export function stampNanos(): bigint {
  return process.hrtime.bigint();
}

/** How many digits a stamp has in a chunk, so that all chunks have one length. */
export const stampDigits = 19;

/** A stamp between marks that no frame of a gateway cuts or escapes. */
export const stampPattern = /<(\d{19})>/g;

/** A wire format as the load generator speaks it. */
export interface BenchFormat {
  readonly name: "chat" | "messages" | "responses";
  readonly path: string;
  /** What the last event of a whole answer has, and no other. */
  readonly end: string;
  /** How an answer says that the model came to its end: one that a gateway ended at a limit says something else. */
  readonly finish: string;
  body(order: MockOrder, options?: BodyOptions): Readonly<Record<string, unknown>>;
}

interface BodyOptions {
  /** What comes before the order. */
  readonly ballast?: string | undefined;
  /** Absent: the name that every arm but one takes. */
  readonly model?: string | undefined;
}

const usual = "service-llm";

function messages(order: MockOrder, ballast: string | undefined): readonly unknown[] {
  const asked = { role: "user", content: JSON.stringify(order) };
  return ballast === undefined ? [asked] : [{ role: "user", content: ballast }, asked];
}

export const chat: BenchFormat = {
  name: "chat",
  path: "/v1/chat/completions",
  end: "data: [DONE]",
  finish: '"finish_reason":"stop"',
  body: (order, { ballast, model = usual } = {}) => ({
    model,
    stream: true,
    max_completion_tokens: order.chunks + 16,
    messages: messages(order, ballast),
  }),
};

/** Every wire format, by the name that an option gives it. */
export const formats: readonly BenchFormat[] = [
  chat,
  {
    name: "messages",
    path: "/v1/messages",
    end: "event: message_stop",
    finish: '"stop_reason":"end_turn"',
    body: (order, { ballast, model = usual } = {}) => ({
      model,
      stream: true,
      max_tokens: order.chunks + 16,
      messages: messages(order, ballast),
    }),
  },
  {
    name: "responses",
    path: "/v1/responses",
    end: '"type":"response.completed"',
    finish: '"type":"response.completed"',
    body: (order, { ballast, model = usual } = {}) => ({
      model,
      stream: true,
      input: messages(order, ballast),
    }),
  },
];
