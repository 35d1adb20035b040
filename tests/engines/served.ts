import { startService, type TestService } from "../service/start-service.ts";
import type { EngineProcess } from "./engine.ts";

/** A service in front of an engine. */
export interface Served {
  readonly engine: EngineProcess;
  readonly service: TestService;
}

/** A service of its own in front of an engine's address, with more settings where they are tried. */
export function serve(
  origin: string,
  settings: Readonly<Record<string, string>> = {},
): Promise<TestService> {
  return startService({
    environment: {
      TRIBUTARY_DEPLOYMENT_URL: origin,
      TRIBUTARY_REQUESTS_PER_MINUTE: "1000000",
      TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "100",
      ...settings,
    },
  });
}
