/** What schemathesis is not asked to do with a document, and why. */
export interface Exceptions {
  /** By their operationId. */
  readonly operations: Readonly<Record<string, string>>;
  readonly checks: Readonly<Record<string, string>>;
}

/** Checks that hold for both documents: of status codes, content types, headers, schemas, and 5xx. */
export const checks = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_headers_conformance",
  "response_schema_conformance",
  "negative_data_rejection",
  "unsupported_method",
  "missing_required_header",
] as const;

/** Of the operators' document. */
export const operatorExceptions: Exceptions = {
  operations: {
    drainReplica: "it ends the service that is asked; tests/cli/serve.test.ts does that",
    watchLive: "it goes on until it is left; tests/operators/live.test.ts reads it",
    revokeOperator: "it finds the operator whose token asks in the list, and revokes it",
  },
  checks: {},
};

/** Of the callers' document. */
export const callerExceptions: Exceptions = { operations: {}, checks: {} };
