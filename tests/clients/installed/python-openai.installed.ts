import { join } from "node:path";
import { pythonProgram } from "../../agents/install.ts";
import { describeClient } from "../client-laws.ts";
import { openaiLacks } from "../openai.ts";
import { drivenClient, type DrivenKind, useDriver } from "./driver.ts";
import { describePythonAlone } from "./python.ts";

const driver = useDriver([pythonProgram, join(import.meta.dirname, "drivers/python-openai.py")]);

const errorNames: DrivenKind["errorNames"] = {
  400: "BadRequestError",
  401: "AuthenticationError",
  402: "APIStatusError",
  403: "PermissionDeniedError",
  404: "NotFoundError",
  413: "APIStatusError",
  429: "RateLimitError",
  502: "InternalServerError",
  503: "InternalServerError",
};

const chat: DrivenKind = {
  name: "Python openai chat",
  client: "chat",
  driver,
  format: "chat-completions",
  errorNames,
  impossibleField: '"param":"n"',
  loopsReturnReasoning: { "by hand": true, "by hand, streamed": true },
  finishes: { stop: "stop", length: "length", calls: "tool_calls" },
  parsesCalls: false,
  lacks: openaiLacks,
  // The helper leaves the number of a call in it.
  changing: ["id", "created", "index", "parsed", "parsed_arguments"],
};

const responses: DrivenKind = {
  name: "Python openai responses",
  client: "responses",
  driver,
  format: "responses",
  errorNames,
  impossibleField: '"param":"previous_response_id"',
  loopsReturnReasoning: { "by hand": true, "by hand, streamed": true, "its tool runner": true },
  finishes: { stop: "completed", length: "max_output_tokens", calls: "completed" },
  parsesCalls: false,
  lacks: openaiLacks,
  changing: ["id", "created_at", "completed_at", "encrypted_content", "parsed", "parsed_arguments"],
};

for (const kind of [chat, responses]) {
  describeClient(drivenClient(kind));
  describePythonAlone(kind);
}
