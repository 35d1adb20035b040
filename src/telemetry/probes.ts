/** Paths that machines ask for all day long. */
export const probes: ReadonlySet<string> = new Set([
  "/healthz",
  "/readyz",
  "/metrics",
  "/",
  "/api/hello",
]);
