import { createAnthropic } from "@ai-sdk/anthropic";
import { aiClient } from "./ai.ts";
import { describeClient } from "./client-laws.ts";

describeClient(
  aiClient({
    name: "ai with anthropic",
    format: "messages",
    modelOf: ({ url, key }) =>
      createAnthropic({ baseURL: `${url}/v1`, apiKey: key })("service-llm"),
    impossibleField: "messages[0].content[0]",
    returnsReasoning: true,
  }),
);
