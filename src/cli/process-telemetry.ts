import { randomUUID } from "node:crypto";
import type { Config } from "../config/config.ts";
import { processEnvironment } from "../config/environment.ts";
import type { Log } from "../telemetry/log.ts";
import type { Otlp } from "../telemetry/otlp/open-otlp.ts";
import { type OtlpSettings, readOtlpSettings } from "../telemetry/otlp-settings.ts";
import { openTelemetry, type ServiceTelemetry } from "../telemetry/telemetry.ts";
import { quietTimers } from "../timers.ts";
import { version } from "./version.ts";

/** The telemetry of a process that serves. */
export interface ProcessTelemetry extends ServiceTelemetry {
  /** Sends what is left, and nothing after it; false: not all of it arrived in time. */
  flush(): Promise<boolean>;
}

/**
 * Opens it, and what the standard variables `OTEL_*` switch on: those of the process, which the packages of OpenTelemetry
 * read, and not those of `.env`. Where they switch on nothing, none of these packages is loaded.
 */
export async function openProcessTelemetry(
  config: Config,
  parts: { readonly log: Log; readonly process?: number },
): Promise<ProcessTelemetry> {
  const settings = readOtlpSettings(processEnvironment());
  let telemetry: ServiceTelemetry | null = null;
  const onExport = (signal: string, failure: Error | null): void => {
    if (failure === null) telemetry?.lifecycle("telemetry arriving again", { signal });
    else telemetry?.lifecycle("telemetry not arriving", { signal, reason: failure.message });
  };
  const otlp =
    settings === null ? null : await openOtlpOf(settings, { config, onExport, ...parts });
  telemetry = openTelemetry({
    log: parts.log,
    secrets: [config.deployment?.apiKey ?? ""],
    defaultMetrics: true,
    otlp,
  });
  if (settings !== null) {
    telemetry.lifecycle("telemetry sent", { signals: [...settings.signals].join(", ") });
    for (const reason of settings.notOffered)
      telemetry.lifecycle("telemetry not offered", { reason });
  }
  return { ...telemetry, flush: async () => (await otlp?.close()) !== false };
}

async function openOtlpOf(
  settings: OtlpSettings,
  parts: {
    readonly config: Config;
    readonly process?: number;
    readonly onExport: (signal: string, failure: Error | null) => void;
  },
): Promise<Otlp> {
  const { openOtlp } = await import("../telemetry/otlp/open-otlp.ts");
  const { config, onExport, process } = parts;
  return openOtlp(settings, {
    version,
    instanceId: randomUUID(),
    ...(process === undefined ? {} : { process }),
    deployment: addressOf(config),
    now: Date.now,
    timers: quietTimers,
    onExport,
  });
}

function addressOf({ deployment }: Config): Readonly<Record<string, string | number>> {
  const url = deployment === null ? null : URL.parse(deployment.url);
  if (url === null) return {};
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  return { "server.address": url.hostname, "server.port": port };
}
