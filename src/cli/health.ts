import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { limits } from "../limits.ts";
import { socketPathOf, urlOf } from "../network/http-server.ts";
import { askOwnServer } from "../network/own-server.ts";
import { CommandError, misuse, type Outcome, type Shell } from "./command.ts";
import { ensureConfig } from "./settings.ts";

/** `health` */
export async function askHealth(
  shell: Shell,
  { ready = false }: { readonly ready?: boolean | undefined },
): Promise<Outcome> {
  const { host, port, tls } = ensureConfig(shell);
  if (port === 0 && socketPathOf(host) === null)
    throw misuse(
      "TRIBUTARY_PORT=0 picks another port at each start: set one, so that it is known.",
    );
  const url = urlOf({ host, port, tls });
  const path = ready ? "/readyz" : "/healthz";
  const request = askOwnServer({ host, port, url }, { method: "GET", path });
  request.setTimeout(limits.readinessMs + limits.healthAnswerMs, () =>
    request.destroy(new Error("it does not answer")),
  );
  request.end();
  try {
    const [answer] = (await once(request, "response")) as [IncomingMessage];
    const said = await text(answer);
    const ok = answer.statusCode === 200;
    return { json: { ok, status: answer.statusCode }, text: `${said}\n`, exitCode: ok ? 0 : 1 };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandError("not_reached", 1, `${url}${path}: ${reason}`);
  }
}
