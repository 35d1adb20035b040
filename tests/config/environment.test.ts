import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { readEnvironment } from "../../src/config/environment.ts";

describe("the environment", () => {
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "tributary-environment-"));
  });
  afterEach(() => {
    vi.unstubAllEnvs();
    rmSync(folder, { recursive: true });
  });

  it("has what the .env file of the folder says", () => {
    writeFileSync(
      join(folder, ".env"),
      '# settings\nTRIBUTARY_PORT=9000\nTRIBUTARY_DEPLOYMENT_API_KEY="a b" # comment\n',
    );
    expect(readEnvironment(folder)).toMatchObject({
      TRIBUTARY_PORT: "9000",
      TRIBUTARY_DEPLOYMENT_API_KEY: "a b",
    });
  });

  it("prefers the process's own variables", () => {
    writeFileSync(join(folder, ".env"), "TRIBUTARY_PORT=9000\nTRIBUTARY_HOST=::1\n");
    vi.stubEnv("TRIBUTARY_PORT", "9001");
    expect(readEnvironment(folder)).toMatchObject({
      TRIBUTARY_PORT: "9001",
      TRIBUTARY_HOST: "::1",
    });
  });

  it("needs no .env file, and takes a folder of that name for something else", () => {
    expect(readEnvironment(folder)["PATH"]).toBe(process.env["PATH"]);
    mkdirSync(join(folder, ".env"));
    expect(readEnvironment(folder)["PATH"]).toBe(process.env["PATH"]);
  });
});
