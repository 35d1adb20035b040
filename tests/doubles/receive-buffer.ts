import { dlopen } from "node:ffi";
import type { Socket } from "node:net";

const { functions } = dlopen(null, {
  setsockopt: { arguments: ["i32", "i32", "i32", "pointer", "u32"], return: "i32" },
});
/** SOL_SOCKET and SO_RCVBUF. */
const [level, option] = process.platform === "darwin" ? [0xffff, 0x1002] : [1, 8];

/**
 * Bounds what this reader's own kernel takes for it, in bytes (Linux doubles the number): the rest waits on the
 * sender's side. Without it a reader that stopped goes on receiving, tens of megabytes on some machines.
 */
export function boundReceiveBuffer(socket: Socket, bytes: number): void {
  const { _handle: handle } = socket as Socket & { readonly _handle: { readonly fd: number } };
  const value = new Uint8Array(Int32Array.of(bytes).buffer);
  if (functions.setsockopt(handle.fd, level, option, value, value.byteLength) !== 0)
    throw new Error("the receive buffer could not be set");
}
