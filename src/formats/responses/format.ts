import type { WireFormat } from "../wire-format.ts";
import { parseResponsesRequest } from "./request.ts";
import { buildResponsesAnswer } from "./response.ts";
import { openResponsesEncoder } from "./stream-encoder.ts";
import type { ResponsesEcho } from "./wire.ts";

/** The Responses format. */
export const responsesFormat: WireFormat<ResponsesEcho> = {
  name: "responses",
  parseRequest: parseResponsesRequest,
  openEncoder: openResponsesEncoder,
  buildResponse: buildResponsesAnswer,
};
