import manifest from "../../package.json" with { type: "json" };
import { openOperatorApi } from "../../src/operators/api.ts";
import { quietTimers } from "../../src/timers.ts";
import { unwatchedService } from "./unwatched-service.ts";

type Json = Record<string, unknown>;

/** The operators' OpenAPI document, put together from the routes and their schemas. */
export function buildOperatorsDocument(): Json & {
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
} {
  const api = openOperatorApi({
    ledger: () => Promise.reject(new Error("there is no ledger here")),
    tries: { areTooMany: () => false, add: () => {} },
    clientOf: () => "127.0.0.1",
    publicUrl: null,
    scheme: "http",
    service: unwatchedService(),
    newId: (prefix) => prefix,
    now: () => 0,
    version: manifest.version,
    prices: { inputNanosPerMillion: 0n, outputNanosPerMillion: 0n },
    privateAddresses: "refuse",
    timers: quietTimers,
    closing: new AbortController().signal,
    onFailure: () => {},
  });
  api.openAPIRegistry.registerComponent("securitySchemes", "operator", {
    type: "http",
    scheme: "bearer",
    description: "a token of an operator: `tributary operator create NAME --role owner` prints one",
  });
  const document = api.getOpenAPI31Document({
    openapi: "3.1.0",
    info: {
      title: "Tributary: operators",
      version: manifest.version,
      description: "Accounts, keys, credit, receipts and usage of one service, for its operators.",
      license: { name: "Apache-2.0", url: "https://www.apache.org/licenses/LICENSE-2.0" },
    },
    servers: [{ url: "/" }],
    security: [{ operator: [] }],
  });
  return document as unknown as ReturnType<typeof buildOperatorsDocument>;
}
