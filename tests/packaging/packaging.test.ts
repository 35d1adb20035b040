import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { variables } from "../../src/config/environment.ts";
import { limits } from "../../src/limits.ts";

const root = join(import.meta.dirname, "../..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");

const unit = read("deploy/systemd/tributary.service");
const container = read("deploy/container/Containerfile");
const compose = read("deploy/compose/compose.yaml");
const chart = (name: string): string => read(`deploy/helm/tributary/${name}`);
const deployment = chart("templates/deployment.yaml");
const values = chart("values.yaml");

/** The seconds that a running service may take from SIGTERM to its end, by these settings. */
const endSeconds = (delay: number, drain: number): number =>
  delay + drain + (limits.drainSettleMs + limits.processEndMs) / 1_000 - 2;
const drainDefault = Number(variables.TRIBUTARY_DRAIN_SECONDS.default);

function numberIn(text: string, pattern: RegExp): number {
  const [, found = ""] = pattern.exec(text) ?? [];
  expect(found, String(pattern)).toMatch(/^\d+$/);
  return Number(found);
}

describe("what deploy/ has", () => {
  it("names no setting that does not exist", () => {
    const files = globSync("deploy/**/*", { cwd: root, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name));
    expect(files.length).toBeGreaterThan(12);
    // Variables of the compose file itself.
    const known = [...Object.keys(variables), "TRIBUTARY_IMAGE"];
    const names = files.flatMap((file) =>
      readFileSync(file, "utf8").match(/TRIBUTARY_[A-Z_]*[A-Z]/g),
    );
    expect(names.filter((name) => name !== null && !known.includes(name))).toEqual([]);
  });

  it("names no registry of images", () => {
    const images = [
      ...`${container}\n${compose}\n${values}`.matchAll(/(?:image:|BASE=|repository:) *(\S+)/g),
    ];
    expect(images.length).toBeGreaterThan(6);
    // A host comes first, and has a dot or a port; `docker.io` and the like are a matter of whoever builds.
    for (const [, image = ""] of images) {
      const parts = image.replace(/\$\{[A-Z_]+:-/, "").split("/");
      expect(parts.slice(0, -1).join("/")).not.toMatch(/[.:]/);
    }
  });

  it("gives a service the time that its end takes", () => {
    const least = endSeconds(0, drainDefault);
    expect(numberIn(unit, /^TimeoutStopSec=(\d+)$/m)).toBeGreaterThanOrEqual(least);
    expect(
      numberIn(compose, /stop_grace_period: (\d+)s\n {4}restart: unless-stopped\n {4}depends_on/),
    ).toBeGreaterThanOrEqual(least);
    const more = numberIn(
      deployment,
      /terminationGracePeriodSeconds: \{\{ add (?:\.Values\.termination\.\w+ ){3}(\d+) \}\}/,
    );
    expect(more).toBeGreaterThanOrEqual(least - drainDefault);
    expect(numberIn(values, /drainSeconds: (\d+)/)).toBe(drainDefault);
  });
});

describe("the systemd unit", () => {
  const program = ["/usr/bin/systemd-analyze", "/bin/systemd-analyze"].find((path) =>
    existsSync(path),
  );

  it.skipIf(program === undefined)("is right, and rated OK or better", () => {
    const folder = mkdtempSync(join(tmpdir(), "tributary-unit-"));
    try {
      const path = join(folder, "tributary.service");
      // What it starts is not installed here.
      writeFileSync(path, unit.replace(/^ExecStart=\S+/m, `ExecStart=${process.execPath}`));
      const verified = spawnSync(program ?? "", ["verify", path], { encoding: "utf8" });
      // It exits 0 even where it knows a key not.
      expect([verified.status, verified.stderr]).toEqual([0, ""]);
      const rated = execFileSync(program ?? "", ["security", "--offline=true", path], {
        encoding: "utf8",
      });
      const [, exposure = ""] =
        /Overall exposure level for \S+: ([\d.]+) (?:OK|SAFE)/.exec(rated) ?? [];
      expect(Number(exposure), rated.slice(-300)).toBeLessThan(2);
      expect(exposure).not.toBe("");
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("ends with the signal that drains, alone with its children, and not for what a start cannot mend", () => {
    for (const line of [
      "KillSignal=SIGTERM",
      "KillMode=mixed",
      "RestartPreventExitStatus=2",
      "DynamicUser=yes",
    ])
      expect(unit.split("\n")).toContain(line);
  });
});

describe("the image", () => {
  it("runs as a user by number, by the entry that the package has, and asks itself by its own command", () => {
    const { bin } = JSON.parse(read("package.json")) as {
      readonly bin: { readonly tributary: string };
    };
    const entry = `"node", "/opt/tributary/${bin.tributary}"`;
    expect(container).toContain(`ENTRYPOINT [${entry}]`);
    expect(container).toMatch(new RegExp(`^HEALTHCHECK .*CMD \\[${entry}, "health"\\]$`, "m"));
    expect(container.split("\n")).toEqual(
      expect.arrayContaining(["USER 10001:10001", "STOPSIGNAL SIGTERM"]),
    );
    expect(deployment).toContain("runAsUser: 10001");
  });
});

describe("the chart", () => {
  it("keeps the address of its Service out of the settings, and secrets out of its values", () => {
    expect(deployment).toMatch(/^ {6}enableServiceLinks: false$/m);
    expect(deployment).toContain("readOnlyRootFilesystem: true");
    expect(deployment).not.toMatch(/name: TRIBUTARY_(?:DATABASE_URL|DEPLOYMENT_API_KEY)$/m);
    const schema = JSON.parse(chart("values.schema.json")) as {
      readonly properties: { readonly settings: { readonly properties: Record<string, unknown> } };
    };
    const { properties } = schema.properties.settings;
    // What the chart sets itself, or what is a secret, is refused among the settings.
    const own = [...deployment.matchAll(/- name: (TRIBUTARY_(?:PORT|OPERATOR_PORT|DRAIN_\w+))$/gm)];
    expect(own).toHaveLength(4);
    for (const [, name = ""] of own) expect(properties[name], name).toBe(false);
    const secrets = ["TRIBUTARY_DATABASE_URL", "TRIBUTARY_DEPLOYMENT_API_KEY"];
    for (const name of secrets) expect(properties[name], name).toBe(false);
  });

  it("has a default for every value that its templates ask for, and a pause before the end", () => {
    const asked = globSync("deploy/helm/tributary/templates/*", { cwd: root }).flatMap((path) => [
      ...read(path).matchAll(/\.Values\.([A-Za-z.]+)/g),
    ]);
    const names = new Set(asked.map(([, name = ""]) => name));
    expect(names.size).toBeGreaterThan(25);
    const missing = [...names].filter((name) => !hasValue(name.split(".")));
    expect(missing).toEqual([]);
    expect(deployment).toMatch(
      /preStop:\n +sleep:\n +seconds: \{\{ \.Values\.termination\.preStopSeconds \}\}/,
    );
  });
});

/** Whether values.yaml has these keys below each other. */
function hasValue(path: readonly string[]): boolean {
  let lines = values.split("\n");
  for (const [depth, name] of path.entries()) {
    const begin = lines.findIndex((line) => line.startsWith(`${"  ".repeat(depth)}${name}:`));
    if (begin === -1) return false;
    const rest = lines.slice(begin + 1);
    const end = rest.findIndex((line) => line !== "" && !line.startsWith("  ".repeat(depth + 1)));
    lines = end === -1 ? rest : rest.slice(0, end);
  }
  return true;
}
