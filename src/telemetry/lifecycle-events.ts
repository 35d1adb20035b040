/** How severe a change of the service's own state is, and what the operator can do about it. */
export interface LifecycleEvent {
  readonly level: "info" | "warn" | "error";
  /** Added to the line. */
  readonly remedy?: string;
}

/**
 * Every lifecycle event. `error`: no generation is served, or answers were lost, until an operator acts or the service
 * has mended it; `warn`: it may pass by itself; `info`: it is well, or well again.
 */
const lifecycleEvents: Readonly<Record<string, LifecycleEvent>> = {
  listening: { level: "info" },
  "operators listening": { level: "info" },
  "certificate loaded": { level: "info" },
  "certificate not loaded": {
    level: "error",
    remedy:
      "The certificate that was there before is still used, until it ends: mend the files, which are looked at every 10 s.",
  },
  "receipts archived": { level: "info" },
  "console not built": {
    level: "warn",
    remedy: "Run `npm run build:console`; the service need not start again.",
  },
  first_key: {
    level: "info",
    remedy:
      "Read the key in this file, then remove the file: only the key's hash is stored elsewhere.",
  },
  "first_key not written": {
    level: "error",
    remedy: "Make another key for this account: tributary key create ACCOUNT.",
  },
  "data folder writable by others": {
    level: "warn",
    remedy:
      "Whoever may write there can put another ledger in the place of this one: chmod 700 the folder.",
  },
  // Files in it are the service's own alone, so that names and sizes are all that others see.
  "data folder readable by others": { level: "info", remedy: "chmod 700 the folder." },
  leaving: { level: "info" },
  draining: { level: "info" },
  stopped: { level: "info" },
  "serving process started": { level: "info" },
  "serving process ended": {
    level: "error",
    remedy:
      "What it was serving is lost and charged 0; another takes its place by itself. With `signal` SIGKILL the system was short of memory, so give it more or set TRIBUTARY_PROCESSES lower.",
  },
  "serving process not started": {
    level: "error",
    remedy: "It is tried again by itself; the service ends where no process can be started.",
  },
  "ready again": { level: "info" },
  "connections full": {
    level: "warn",
    remedy:
      "Callers have all the connections that this process takes; more are closed at once. Raise its limit of open files (ulimit -n), or start another replica.",
  },
  "wrong keys": {
    level: "warn",
    remedy:
      "A program is set up with a wrong key, or one guesses; right keys from there are served. Where `client` is a proxy of yours, name it in TRIBUTARY_TRUSTED_PROXIES.",
  },
  "send buffers not bounded": {
    level: "warn",
    remedy:
      "Remove TRIBUTARY_SEND_BUFFER_BYTES, or run on Node 26 under Linux or macOS; the system's own bound is the sysctl net.ipv4.tcp_wmem.",
  },
  "waiting for the ledger": {
    level: "warn",
    remedy:
      "Start the database, or correct TRIBUTARY_DATABASE_URL. The service starts as soon as it answers.",
  },
  "ledger migrated": { level: "info" },
  "prices of the ledger": {
    level: "info",
    remedy:
      "TRIBUTARY_INPUT_PRICE and TRIBUTARY_OUTPUT_PRICE are not used from then on: change prices with `tributary price change default`.",
  },
  "database pooler": {
    level: "warn",
    remedy:
      "Name the server itself in TRIBUTARY_DATABASE_URL, or let the pooler work in session mode: through transactions alone nothing tells that a process died, so that its accounts wait for its leases, and statements have no time limit on the server.",
  },
  "ledger gone": {
    level: "error",
    remedy:
      "Set TRIBUTARY_DATABASE_URL to where the ledger was moved, or put its file or a backup back while the service is stopped; then start it again.",
  },
  "ledger back": { level: "info" },
  "webhook failing": {
    level: "warn",
    remedy:
      "An event was tried ten times over three days. See what is said of the deliveries (GET /api/v1/webhooks/ID/deliveries), mend the receiver or the url, and send again.",
  },
  "telemetry sent": { level: "info" },
  "telemetry not offered": {
    level: "warn",
    remedy: "Change the variable, or unset it; docs/telemetry.md lists what is offered.",
  },
  "telemetry not arriving": {
    level: "warn",
    remedy:
      "See that the collector runs and that OTEL_EXPORTER_OTLP_ENDPOINT names its port for HTTP (4318 mostly). Requests are served all the same; what is measured meanwhile is lost.",
  },
  "telemetry arriving again": { level: "info" },
  "deployment found": { level: "info" },
  "deployment not found": {
    level: "warn",
    remedy:
      "See that the deployment runs, and that TRIBUTARY_DEPLOYMENT_URL, its key and its certificate are right. It is asked again every few seconds.",
  },
  "weights downloading": { level: "info" },
  // The next source is asked.
  "weights source failed": { level: "info" },
  "weights fetched": { level: "info" },
  "weights missing": {
    level: "error",
    remedy:
      "Put the weights where TRIBUTARY_MODEL says, or let `tributary model pull` tell what is in the way. It is tried again.",
  },
  "model loaded": { level: "info" },
  "model not loaded": {
    level: "error",
    remedy: "Choose other weights by TRIBUTARY_MODEL, or make room for these. It is tried again.",
  },
  "model process ended": {
    level: "error",
    remedy:
      "It is started again by itself. If that happens often: with `signal` SIGKILL the system was short of memory, so give it more or choose smaller weights by TRIBUTARY_MODEL; else what it wrote last is in `output`, and `tributary doctor` tries it alone.",
  },
  // Libraries warn of what is usual, too: at `warn` it would be an alarm at every start.
  "model warning": { level: "info" },
};

/** What is known of an event; one that is not in the table is `info`. */
export function lifecycleEvent(event: string): LifecycleEvent {
  const known = Object.hasOwn(lifecycleEvents, event) ? lifecycleEvents[event] : undefined;
  return known ?? { level: "info" };
}

/** The names of all events. */
export const lifecycleEventNames: readonly string[] = Object.keys(lifecycleEvents);
