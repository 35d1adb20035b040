import { createInterface } from "node:readline";

/** The tool that is offered; what runs it is `runWeather`. */
export const weather = {
  name: "weather",
  description: "Tells the weather of a city",
  schema: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false,
  },
};

/** What the tool says. */
export const runWeather = ({ city }) => `${city}: sun, 21 degrees`;

const tell = (words) => process.stdout.write(`${JSON.stringify(words)}\n`);

/** Errors of the OpenAI and the Anthropic SDK, which the clients here pass on. */
function seeError(error) {
  return {
    status: error?.status ?? null,
    name: error?.constructor?.name ?? "",
    message: String(error?.message ?? error),
    retryAfter: error?.headers?.get?.("retry-after") ?? null,
    requestId: error?.requestID ?? null,
  };
}

/** Follows orders on standard input, a line of JSON each, and tells what a client of the service saw. */
export function serve(perform) {
  const leaving = new Map();
  async function follow(order) {
    const { id } = order;
    const { signal } = leaving.get(id);
    try {
      tell({ id, answer: await perform(order, { signal, onText: (text) => tell({ id, text }) }) });
    } catch (error) {
      tell({ id, error: seeError(error) });
    }
  }
  createInterface({ input: process.stdin }).on("line", (line) => {
    const order = JSON.parse(line);
    if (order.leave === true) leaving.get(order.id).abort();
    else {
      leaving.set(order.id, new AbortController());
      void follow(order);
    }
  });
  tell({ ready: true });
}
