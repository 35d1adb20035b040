import { startService, type TestService } from "../service/start-service.ts";
import type { EngineProcess } from "./engine.ts";

/** A service in front of an engine. */
export interface Served {
  readonly engine: EngineProcess;
  readonly service: TestService;
}

/** A service of its own in front of an engine's address. */
export function serve(origin: string): Promise<TestService> {
  return startService({
    environment: {
      TRIBUTARY_DEPLOYMENT_URL: origin,
      TRIBUTARY_REQUESTS_PER_MINUTE: "1000000",
      TRIBUTARY_CONCURRENCY_PER_ACCOUNT: "100",
    },
  });
}
