import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { aiClient } from "./ai.ts";
import { describeClient } from "./client-laws.ts";

describeClient(
  aiClient({
    name: "ai with openai-compatible",
    format: "chat-completions",
    modelOf: ({ url, key }) =>
      createOpenAICompatible({
        name: "tributary",
        baseURL: `${url}/v1`,
        apiKey: key,
        includeUsage: true,
      })("service-llm"),
    impossibleField: "messages[0].content[0]",
    returnsReasoning: true,
  }),
);
