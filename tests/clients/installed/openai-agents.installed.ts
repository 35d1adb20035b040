import { describeClient } from "../client-laws.ts";
import { openaiErrorNames } from "../openai.ts";
import { drivenClient, type DrivenKind, useDriver } from "./driver.ts";
import { nodeDriver } from "./node-driver.ts";

const noCall = "the SDK has no call for it";
const nothing = "it asks again, within its limit of turns";

const responses: DrivenKind = {
  name: "OpenAI Agents responses",
  client: "responses",
  driver: useDriver(nodeDriver("openai-agents.mjs")),
  format: "responses",
  errorNames: openaiErrorNames,
  impossibleField: "input[0].content[0]",
  loopsReturnReasoning: { run: true, "run, streamed": true },
  finishes: null,
  parsesCalls: false,
  lacks: {
    models: noCall,
    "token count": noCall,
    nothing,
    "a text that was cut": "a stream that was cut throws",
  },
  changing: [],
};

const chat: DrivenKind = {
  ...responses,
  name: "OpenAI Agents chat",
  client: "chat",
  format: "chat-completions",
  impossibleField: "messages[0].content[0]",
  loopsReturnReasoning: { run: false, "run, streamed": false },
  lacks: {
    models: noCall,
    "token count": noCall,
    nothing,
    reasoning: "reads another field than the one in which engines give it",
  },
};

for (const kind of [responses, chat]) describeClient(drivenClient(kind));
