/** Where lines of the log are written; `event` is what happened, in words of which there are few. */
export interface Lines {
  isLevelEnabled(level: "debug" | "info" | "warn" | "error"): boolean;
  debug(fields: object, event: string): void;
  info(fields: object, event: string): void;
  warn(fields: object, event: string): void;
  error(fields: object, event: string): void;
}
