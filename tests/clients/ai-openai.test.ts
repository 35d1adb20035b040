import { createOpenAI } from "@ai-sdk/openai";
import { aiClient } from "./ai.ts";
import type { Connection } from "./client.ts";
import { describeClient } from "./client-laws.ts";

const providerOf = ({ url, key }: Connection) =>
  createOpenAI({ baseURL: `${url}/v1`, apiKey: key });

const responses = {
  format: "responses",
  modelOf: (connection: Connection) => providerOf(connection)("service-llm"),
  impossibleField: "input[0].content[0]",
} as const;

// Without it this provider sends references to items that a stateless service does not have.
const openai = { store: false };

describeClient(
  aiClient({
    ...responses,
    name: "ai with openai",
    providerOptions: { openai },
    lacksReasoning: "shows summaries only, and only when one is asked for",
    returnsReasoning: false,
  }),
);

describeClient(
  aiClient({
    ...responses,
    name: "ai with openai that returns reasoning",
    providerOptions: {
      openai: {
        ...openai,
        include: ["reasoning.encrypted_content"],
        reasoningSummary: "auto",
        // It takes a model whose name it does not know for one that does not think.
        forceReasoning: true,
      },
    },
    returnsReasoning: true,
  }),
);

describeClient(
  aiClient({
    name: "ai with openai's chat",
    format: "chat-completions",
    modelOf: (connection) => providerOf(connection).chat("service-llm"),
    impossibleField: "messages[0].content[0]",
    lacksReasoning: "this provider has no field for it",
    returnsReasoning: false,
  }),
);
