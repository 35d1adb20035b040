import type { Server } from "node:net";

/** The numbers of SOL_SOCKET and SO_SNDBUF, which each system chose for itself. */
const socketOptions: Partial<Record<NodeJS.Platform, readonly [level: number, option: number]>> = {
  linux: [1, 7],
  darwin: [0xffff, 0x1001],
};

/**
 * Bounds what the kernel takes for each connection that a listening server accepts, in bytes; Linux doubles the number
 * for its own bookkeeping. False where this cannot be had: Node 24, Windows, a build without `node:ffi`.
 *
 * The kernel lets a send buffer grow to megabytes (`tcp_wmem`). What lies there is taken from the deployment, and paid
 * for, though the reader has stopped; `streamBufferedBytesMax` does not reach it. Node sets this option for UDP only.
 * Measured with four readers that stop, most that was taken and not read: 5.4 MiB without the bound, 1.6 MiB with 128
 * KiB. Loading `node:ffi` prints that it is experimental.
 */
export function boundSendBuffers(server: Server, bytes: number): boolean {
  const numbers = socketOptions[process.platform];
  const descriptor = descriptorOf(server);
  if (numbers === undefined || descriptor === null) return false;
  try {
    const setSocketOption = loadSetSocketOption();
    // Native byte order, as C reads it. Accepted sockets inherit the option.
    const value = new Uint8Array(Int32Array.of(bytes).buffer);
    return setSocketOption?.(descriptor, ...numbers, value, value.byteLength) === 0;
  } catch {
    // A platform whose libffi lacks something.
    return false;
  }
}

function loadSetSocketOption() {
  const ffi = process.getBuiltinModule("node:ffi");
  if (ffi === undefined) return null;
  const { functions } = ffi.dlopen(null, {
    setsockopt: { arguments: ["i32", "i32", "i32", "pointer", "u32"], return: "i32" },
  });
  return functions.setsockopt;
}

function descriptorOf(server: Server): number | null {
  const { _handle: handle } = server as Server & { readonly _handle?: { readonly fd?: unknown } };
  return typeof handle?.fd === "number" && handle.fd >= 0 ? handle.fd : null;
}
