import { fileURLToPath } from "node:url";
import { type Arm, firstLine, gatewayCore, start, stop } from "./arms.ts";

/** What the floor is made of: node:http and undici, or connections joined without HTTP. */
export type FloorKind = "http" | "raw";

/** The smallest program that passes an answer on as it comes: what Node itself takes of a chunk. */
export async function openFloor(origin: string, kind: FloorKind = "http"): Promise<Arm> {
  const program = fileURLToPath(new URL("floor-child.ts", import.meta.url));
  const child = start(process.execPath, [program, origin, kind], { core: gatewayCore });
  const port = await firstLine(child, () => true);
  return {
    name: kind === "http" ? "floor of Node" : "floor without HTTP",
    url: `http://127.0.0.1:${port}/v1/chat/completions`,
    key: "",
    processIds: () => [child.pid ?? 0],
    [Symbol.asyncDispose]: () => stop(child),
  };
}
