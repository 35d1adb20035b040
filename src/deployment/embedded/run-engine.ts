import { startEngineProcess, type EngineEvent, type EngineExit } from "./engine-process.ts";
import { engineEnvironment, folderArguments, type EmbeddedSettings } from "./engine-settings.ts";

/** A command of the engine that comes to an end by itself. */
export interface EngineRun {
  readonly command: "list" | "pull";
  readonly settings: Pick<
    EmbeddedSettings,
    "acceptedLicenses" | "cacheDir" | "dataDir" | "environment" | "model"
  >;
  readonly onEvent: (event: EngineEvent) => void;
  readonly signal: AbortSignal;
}

/** Runs a command of the engine's program, and ends it with the signal. */
export async function runEngine(run: EngineRun): Promise<EngineExit> {
  const { command, onEvent, settings, signal } = run;
  const ended = Promise.withResolvers<EngineExit>();
  const engine = startEngineProcess(
    [command, "--until-stdin-ends", ...folderArguments(settings)],
    engineEnvironment(settings, null),
    { event: onEvent, exited: ended.resolve },
  );
  const stop = (): void => engine.kill();
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    return await ended.promise;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
