import { expect, it, vi } from "vitest";
import { openRawConnection } from "./raw-connection.ts";
import { withoutTrace } from "./refusals.ts";
import { startService } from "./start-service.ts";

// Node itself times the head of a request, once a second and by no clock that a test could move: only the time is another.
vi.mock("../../src/limits.ts", async (load) => {
  const real = await load<{ readonly limits: object }>();
  return { limits: { ...real.limits, requestReceiveMs: 450 } };
});

it("a caller whose header block does not end is closed with a bare 408, though bytes keep coming", async () => {
  await using service = await startService();
  await withoutTrace(service, async () => {
    using connection = await openRawConnection(service.url);
    connection.write("POST /v1/messages HTTP/1.1\r\nhost: x\r\nx: ");
    const keepSending = (): boolean => {
      connection.write("a");
      return connection.socket.destroyed;
    };
    await expect.poll(keepSending).toBe(true);
    await connection.closed;
    expect(connection.text).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\n/);
    expect(connection.text).toMatch(/\r\n\r\n$/);
  });
});
