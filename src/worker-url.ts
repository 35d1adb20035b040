/** The entry of a thread or process beside `base`: sources run as .ts, the published package as .js. */
export function entryUrl(name: string, base: string): URL {
  return new URL(`./${name}${base.endsWith(".ts") ? ".ts" : ".js"}`, base);
}
