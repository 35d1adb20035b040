import type { getRequestListener } from "@hono/node-server";
import { readdir } from "node:fs/promises";
import { setImmediate } from "node:timers/promises";
import { isTimeZone } from "../ledger/periods.ts";
import type { OperatorApiParts } from "./api.ts";

/**
 * The code of the API and of what it needs, each piece with what the pieces before it have left to load: at most 15 ms
 * of the event loop. All at once took 120 to 240, in which every stream waited.
 */
const pieces: readonly (() => unknown)[] = [
  () => import("zod/v4/core"),
  () => import("zod"),
  // Of Node's own `fetch`, which is loaded when one of its names is read first.
  () => globalThis.Request,
  () => import("hono"),
  () => import("@hono/node-server"),
  () => import("@hono/zod-openapi"),
  () => import("./route.ts"),
  () => import("./limit-schemas.ts"),
  () => import("./schemas.ts"),
  () => import("./account-routes.ts"),
  () => import("./key-routes.ts"),
  () => import("./price-routes.ts"),
  () => import("./generation-routes.ts"),
  () => import("./live-routes.ts"),
  () => import("./api.ts"),
  // ICU is read for the first time zone.
  () => isTimeZone("UTC"),
];

/** Answers a request of the API. */
type ServeApi = ReturnType<typeof getRequestListener>;

/** The API, loaded with the first call; where that fails, the next call tries again. */
export function openOperatorApiOnce(parts: OperatorApiParts): () => Promise<ServeApi> {
  let loading: Promise<ServeApi> | null = null;
  return () => {
    const mine = (loading ??= loadOperatorApi(parts));
    mine.catch(() => void (loading = null));
    return mine;
  };
}

/** Piece by piece, with a turn of the event loop behind each. */
async function loadOperatorApi(parts: OperatorApiParts): Promise<ServeApi> {
  for await (const load of everyPiece()) {
    await load();
    await setImmediate();
  }
  const { openOperatorApi } = await import("./api.ts");
  const api = openOperatorApi(parts);
  await setImmediate();
  // Hono sorts its routes for the first request.
  await api.request("/api/v1/openapi.json");
  const server = await import("@hono/node-server");
  return server.getRequestListener(api.fetch);
}

/** zod brings its messages in fifty languages, a file each: a fifth of the whole. */
async function* everyPiece(): AsyncGenerator<() => unknown> {
  const index = import.meta.resolve("zod/v4/locales");
  for (const name of await readdir(new URL(".", index)))
    if (name.endsWith(".js") && !index.endsWith(`/${name}`))
      yield () => import(`zod/v4/locales/${name}`);
  yield* pieces;
}
