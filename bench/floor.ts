import type { Arm } from "./arms.ts";
import { firstLine, gatewayCore, programPath, startProgram, stop } from "./children.ts";
import { processTree } from "./process-usage.ts";
import { chat } from "./wire.ts";

/** What the floor is made of: node:http and undici, or connections joined without HTTP. */
export type FloorKind = "http" | "raw";

/** The smallest program that passes an answer on as it comes: what Node itself takes of a chunk. */
export async function openFloor(origin: string, kind: FloorKind = "http"): Promise<Arm> {
  const program = programPath("floor-child.ts");
  const child = startProgram(process.execPath, [program, origin, kind], { core: gatewayCore });
  const port = await firstLine(child, () => true);
  return {
    name: kind === "http" ? "floor" : "floor-without-http",
    url: `http://127.0.0.1:${port}${chat.path}`,
    key: "",
    does: kind === "http" ? "passes chunks on with node:http and undici" : "joins connections",
    processIds: () => processTree(child.pid ?? 0),
    [Symbol.asyncDispose]: () => stop(child),
  };
}
