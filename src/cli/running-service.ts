import { type Check, failed, passed } from "./check.ts";
import { misuse, type Shell } from "./command.ts";
import { checkFormats } from "./format-checks.ts";
import { recordOf } from "./format-trial.ts";

/** A service that runs, as it is reached from here. */
export interface RunningService {
  readonly url: string;
  /** null: only what needs no key is asked. */
  readonly key: string | null;
}

/** The service that the command line names; null: none. Its key may be in TRIBUTARY_API_KEY, which no list of processes shows. */
export function readRunningService(
  { key, url }: { readonly key?: string | undefined; readonly url?: string | undefined },
  shell: Shell,
): RunningService | null {
  if (url === undefined && key !== undefined)
    throw misuse("--key belongs to --url: the address of a service and a key of it.");
  if (url === undefined) return null;
  if (!/^https?:\/\//.test(url) || URL.parse(url) === null)
    throw misuse(`--url ${JSON.stringify(url)} is no address: write it as http://127.0.0.1:8080.`);
  const inEnvironment = shell.environment()["TRIBUTARY_API_KEY"]?.trim() ?? "";
  return {
    url: url.replace(/\/+(?:v1\/*)?$/, ""),
    key: key ?? (inEnvironment === "" ? null : inEnvironment),
  };
}

/** Asks a service that runs: is it there, is it ready, does it answer. Its ledger and its engine are its own. */
export async function* checkRunningService(
  { key, url }: RunningService,
  timeoutMs: number,
): AsyncGenerator<Check> {
  yield passed("looks at", `the service at ${url} (--url), its own ledger and its own engine`);
  const health = await askService("health", `${url}/healthz`, timeoutMs);
  yield health;
  if (!health.ok) return;
  yield await askService("ready", `${url}/readyz`, timeoutMs);
  const deployment = await askService("deployment", `${url}/readyz?deployment=1`, timeoutMs);
  yield deployment;
  // Without a deployment each format would wait `modelLoadWaitMs` for it, and then say the same.
  if (!deployment.ok) return;
  if (key === null)
    yield failed(
      "key",
      "there is none, so that no format was tried",
      "give a key in TRIBUTARY_API_KEY or with --key; `tributary key create ACCOUNT` makes one",
    );
  else yield* checkFormats({ url, key }, { advice: adviseOnService, timeoutMs });
}

async function askService(name: string, address: string, timeoutMs: number): Promise<Check> {
  try {
    const response = await fetch(address, { signal: AbortSignal.timeout(timeoutMs) });
    const text = await response.text();
    if (response.ok) return passed(name, "yes");
    const reasons = Object.values(recordOf(recordOf(readJson(text))["reasons"]));
    return failed(
      name,
      `${String(response.status)} ${reasons.join(" ")}`.trimEnd(),
      name === "health"
        ? "see that this is the address of Tributary itself, and not of something before it"
        : "see the service's log, and run doctor without --url beside it, with its settings",
    );
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const message = cause instanceof Error && cause.message !== "" ? cause.message : "no answer";
    return failed(name, message, adviseOnService(null));
  }
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function adviseOnService(status: number | null): string {
  if (status === null) return "see that the service runs at this address: `tributary serve`";
  if (status === 401) return "make a key: `tributary key create ACCOUNT`";
  if (status === 402) return "give the account credit: `tributary account credit ID AMOUNT`";
  if (status === 403) return "enable the account: `tributary account enable ID`";
  if (status === 429) return "wait until other requests of the account have ended";
  return "run doctor without --url beside the service, with its settings, to try the deployment alone";
}
