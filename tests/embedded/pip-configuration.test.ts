import { mkdtempSync, writeFileSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { devNull, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readPipSettings } from "../../src/deployment/embedded/pip-configuration.ts";

describe("pip's configuration", () => {
  let home = "";

  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), "pip-"));
  });

  afterEach(() => rm(home, { recursive: true, force: true }));

  async function write(path: string, text: string): Promise<string> {
    const file = join(home, path);
    await mkdir(dirname(file), { recursive: true });
    writeFileSync(file, text);
    return file;
  }

  const read = (environment: Record<string, string> = {}) =>
    readPipSettings({
      environment: { XDG_CONFIG_DIRS: join(home, "xdg"), ...environment },
      platform: "linux",
      home,
    });

  it("reads files for everyone, of the user and of the environment, and variables, the later ones first", async () => {
    await write(
      "xdg/pip/pip.conf",
      "[global]\nindex-url = http://one.test/simple\nno-index: off\n",
    );
    expect(await read()).toMatchObject({ indexUrl: "http://one.test/simple", noIndex: false });
    await write(".config/pip/pip.conf", "[global]\nindex_url=http://two.test/simple\n");
    expect((await read()).indexUrl).toBe("http://two.test/simple");
    await write("venv/pip.conf", "[global]\nindex-url=http://three.test/simple\n");
    const environment = { VIRTUAL_ENV: join(home, "venv") };
    expect((await read(environment)).indexUrl).toBe("http://three.test/simple");
    const named = await write("named.conf", "[global]\nindex-url=http://four.test/simple\n");
    expect((await read({ ...environment, PIP_CONFIG_FILE: named })).indexUrl).toBe(
      "http://four.test/simple",
    );
    const variable = {
      ...environment,
      PIP_CONFIG_FILE: named,
      PIP_INDEX_URL: "http://five.test/simple",
    };
    expect((await read(variable)).indexUrl).toBe("http://five.test/simple");
    expect((await read({ PIP_INDEX_URL: " " })).indexUrl).toBe("http://two.test/simple");
  });

  it("lets the section of the command win over the global one", async () => {
    await write(
      ".config/pip/pip.conf",
      "[download]\nindex-url=http://a.test\n[global]\nindex-url=http://b.test\n",
    );
    expect((await read()).indexUrl).toBe("http://a.test");
  });

  it("reads lists over several lines, between comments", async () => {
    await write(
      ".config/pip/pip.conf",
      "# ours\n[global]\nextra-index-url =\n    http://a.test/simple\n    ; not this\n    http://b.test/simple\ncert = /etc/ours.pem\n",
    );
    const { certificateFile, extraIndexUrls, indexUrl } = await read();
    expect(extraIndexUrls).toEqual(["http://a.test/simple", "http://b.test/simple"]);
    expect(certificateFile).toBe("/etc/ours.pem");
    expect(indexUrl).toBeNull();
  });

  it("passes over every file when pip is told so", async () => {
    await write(".config/pip/pip.conf", "[global]\nindex-url=http://a.test\n");
    expect((await read({ PIP_CONFIG_FILE: devNull })).indexUrl).toBeNull();
  });
});
