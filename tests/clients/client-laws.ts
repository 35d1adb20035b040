import { describe } from "vitest";
import type { ClientKind } from "./client.ts";
import { describeAnswers, describeManyChunks } from "./law-answers.ts";
import { describeErrors } from "./law-errors.ts";
import { describeLeaving } from "./law-leaving.ts";
import { describeLists } from "./law-lists.ts";
import { describeLoops } from "./law-loops.ts";
import { describeKeepalive, describeRetries } from "./law-patience.ts";
import { useService } from "./use-service.ts";

/** What every client must see of the service, whichever it is; its own file says what only it has. */
export function describeClient(kind: ClientKind): void {
  describe(kind.name, () => {
    const service = useService();
    describeAnswers(kind, service);
    describeLoops(kind, service);
    describeLeaving(kind, service);
    describeErrors(kind, service);
    describeRetries(kind);
    describeKeepalive(kind);
    describeManyChunks(kind, service);
    describeLists(kind, service);
  });
}
