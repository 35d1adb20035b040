import { afterAll, beforeAll } from "vitest";
import { isRecord } from "../cases/files.ts";
import type { RecordedRequest } from "../doubles/scripted-deployment.ts";
import { startService, type TestService } from "../service/start-service.ts";

/** A service for all tests of a block, begun with it. */
export function useService(environment: Readonly<Record<string, string>> = {}): () => TestService {
  let service: TestService | null = null;
  beforeAll(async () => {
    service = await startService({ environment });
  });
  afterAll(() => service?.[Symbol.asyncDispose]());
  return () => {
    if (service === null) throw new Error("the service has not started");
    return service;
  };
}

/** The messages of a request to the deployment. */
export function conversationOf(request: RecordedRequest): readonly unknown[] {
  const messages = isRecord(request.json) ? request.json["messages"] : null;
  if (!Array.isArray(messages)) throw new Error(`no messages in ${request.body}`);
  return messages;
}
