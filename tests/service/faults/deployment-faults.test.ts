import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { describe, expect, it } from "vitest";
import { formats, startService, type TestService } from "../start-service.ts";

const [chat] = formats;

/** The lines of an event, as an operator sees them who looks at what is at least `warn`. */
async function linesOf(
  service: TestService,
  event: string,
): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const found = (): readonly Readonly<Record<string, unknown>>[] =>
    service.logLines
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter((line) => line["event"] === event);
  await expect.poll(() => found().length).toBeGreaterThan(0);
  return found();
}

/** A service at the level `warn` whose deployment is somewhere else; it is taken for ready, as its model is known. */
function startAtWarn(url: string): Promise<TestService> {
  return startService({
    environment: {
      TRIBUTARY_LOG_LEVEL: "warn",
      TRIBUTARY_DEPLOYMENT_URL: url,
      TRIBUTARY_DEPLOYMENT_MODEL: "some-model",
    },
  });
}

describe("at the level warn the log names cause and remedy of", () => {
  it("a deployment that cannot be reached", async () => {
    await using service = await startAtWarn("http://127.0.0.1:1");
    const [line, ...more] = await linesOf(service, "deployment not found");
    expect(line).toMatchObject({
      level: "warn",
      reason: "The deployment cannot be reached. connect ECONNREFUSED 127.0.0.1:1",
      remedy: expect.stringMatching(/runs.*TRIBUTARY_DEPLOYMENT_URL.*asked again/) as string,
    });
    expect(more).toEqual([]);
    expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
    expect((await service.post(chat.path, chat.body)).status).toBeGreaterThanOrEqual(500);
    expect(await linesOf(service, "failure")).toMatchObject([{ level: "warn" }]);
    expect(service.logLines.join("")).toContain("ECONNREFUSED");
  });

  it("a deployment whose certificate has expired", async () => {
    const pem = readFileSync(join(import.meta.dirname, "expired-certificate.pem"), "utf8");
    const server = createServer({ key: pem, cert: pem }, (_, response) => response.end());
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const trusted = getCACertificates("default");
    setDefaultCACertificates([...trusted, pem]);
    try {
      const { port } = server.address() as AddressInfo;
      await using service = await startAtWarn(`https://127.0.0.1:${String(port)}`);
      expect(await linesOf(service, "deployment not found")).toMatchObject([
        {
          level: "warn",
          reason: "The deployment cannot be reached. certificate has expired",
          remedy: expect.stringContaining("certificate") as string,
        },
      ]);
      const answer = await service.post(chat.path, chat.body);
      expect(answer.status).toBeGreaterThanOrEqual(500);
      expect(await answer.text()).not.toContain("certificate");
      const [failure] = await linesOf(service, "failure");
      expect(JSON.stringify(failure)).toContain("CERT_HAS_EXPIRED");
    } finally {
      setDefaultCACertificates(trusted);
      server.closeAllConnections();
      server.close();
    }
  });

  it("a deployment that refuses the key it is given", async () => {
    await using service = await startService({
      environment: { TRIBUTARY_LOG_LEVEL: "warn", TRIBUTARY_DEPLOYMENT_API_KEY: "sk-MARKER" },
      deployment: { modelsStatus: 401 },
    });
    expect(await linesOf(service, "deployment not found")).toMatchObject([
      {
        level: "warn",
        reason: expect.stringMatching(/refuses the key.*status 401/) as string,
        remedy: expect.stringContaining("its key") as string,
      },
    ]);
    expect(service.logLines.join("")).not.toContain("MARKER");
  });
});
