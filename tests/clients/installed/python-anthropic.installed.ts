import { join } from "node:path";
import { pythonProgram } from "../../agents/install.ts";
import { describeClient } from "../client-laws.ts";
import { drivenClient, type DrivenKind, useDriver } from "./driver.ts";
import { describePythonAlone } from "./python.ts";

const kind: DrivenKind = {
  name: "Python anthropic",
  client: "messages",
  driver: useDriver([pythonProgram, join(import.meta.dirname, "drivers/python-anthropic.py")]),
  format: "messages",
  errorNames: {
    400: "BadRequestError",
    401: "AuthenticationError",
    402: "PaymentRequiredError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    413: "ContentTooLargeError",
    429: "RateLimitError",
    502: "InternalServerError",
    503: "OverloadedError",
  },
  impossibleField: "messages[0].content[0]",
  loopsReturnReasoning: {
    "by hand": true,
    "by hand, streamed": true,
    tool_runner: true,
    "tool_runner, streamed": true,
  },
  finishes: { stop: "end_turn", length: "max_tokens", calls: "tool_use" },
  parsesCalls: true,
  lacks: {},
  changing: ["id", "signature", "parsed_output"],
};

describeClient(drivenClient(kind));
describePythonAlone(kind);
