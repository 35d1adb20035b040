import type { Signal } from "../otlp-settings.ts";

/** What a push to the collector ends with; 0: well. */
interface ExportResult {
  readonly code: number;
  readonly error?: Error;
}

/** What all three exporters of the packages have in common. */
interface Exporting<Items> {
  export(items: Items, done: (result: ExportResult) => void): void;
}

/** Whether what is measured arrives. */
export interface ExportWatch {
  /** Once, when a signal does not arrive, and once when it does again. */
  changed(signal: Signal, failure: Error | null): void;
}

/** The same exporter; its failures are counted as one until something arrives again. */
export function watchExports<Items, Exporter extends Exporting<Items>>(
  exporter: Exporter,
  signal: Signal,
  watch: ExportWatch,
): Exporter {
  let failing = false;
  const send = exporter.export.bind(exporter);
  exporter.export = (items, done) =>
    send(items, (result) => {
      const failed = result.code !== 0;
      if (failed !== failing) {
        failing = failed;
        watch.changed(signal, failed ? (result.error ?? new Error("not taken")) : null);
      }
      done(result);
    });
  return exporter;
}
