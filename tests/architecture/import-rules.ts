import { dirname, posix } from "node:path";
import manifest from "../../package.json" with { type: "json" };

/** Imports by folder besides itself and the shared files: other folders, and `node:` modules or packages where the row names them. */
interface Allowance {
  readonly folders: readonly string[];
  /** Absent: any. */
  readonly modules?: readonly string[];
}

// docs/ARCHITECTURE.md has the same table, with the reasons.
const table: Readonly<Record<string, Allowance>> = {
  cli: {
    folders: [
      "gateway.ts",
      "processes",
      "config",
      "http",
      "operators",
      "pages",
      "admission",
      "ledger",
      "deployment",
      "telemetry",
      "network",
    ],
  },
  processes: { folders: ["gateway.ts", "config", "ledger", "deployment", "telemetry", "network"] },
  "gateway.ts": {
    folders: [
      "config",
      "http",
      "formats",
      "conversation",
      "generation",
      "admission",
      "ledger",
      "deployment",
      "sse",
      "seal",
      "telemetry",
      "pages",
      "webhooks",
      "network",
    ],
  },
  webhooks: { folders: ["ledger"] },
  http: {
    folders: [
      "formats",
      "generation",
      "admission",
      "ledger",
      "deployment",
      "conversation",
      "sse",
      "seal",
      "telemetry",
      "network",
    ],
  },
  operators: { folders: ["admission", "ledger", "webhooks", "network"] },
  pages: { folders: ["network"] },
  network: { folders: [] },
  generation: { folders: ["admission", "ledger", "deployment", "conversation", "telemetry"] },
  formats: { folders: ["conversation", "sse", "seal"] },
  admission: { folders: ["conversation"], modules: [] },
  deployment: { folders: ["conversation", "sse"] },
  ledger: { folders: ["admission", "conversation"] },
  config: { folders: ["admission", "network"] },
  telemetry: { folders: [] },
  seal: { folders: [], modules: ["node:crypto"] },
  conversation: { folders: [], modules: [] },
  sse: { folders: [], modules: [] },
  "limits.ts": { folders: [], modules: [] },
  "failure.ts": { folders: [], modules: [] },
  "timers.ts": { folders: [], modules: [] },
  "new-id.ts": { folders: [], modules: ["nanoid"] },
  "worker-url.ts": { folders: [], modules: [] },
  "open-once.ts": { folders: [], modules: [] },
  "yield-to-streams.ts": { folders: [], modules: ["node:fs", "node:os"] },
};
const sharedFiles = [
  "limits.ts",
  "failure.ts",
  "timers.ts",
  "new-id.ts",
  "worker-url.ts",
  "open-once.ts",
  "yield-to-streams.ts",
];
// Each package has one home, so that replacing it touches one folder.
const packageHomes: Readonly<Record<string, string>> = {
  "node-llama-cpp": "../engine/",
  fflate: "../engine/",
  "proper-lockfile": "../engine/",
  "@commander-js/extra-typings": "cli/",
  undici: "deployment/",
  nanoid: "new-id.ts",
  pg: "ledger/postgres/",
  pino: "telemetry/",
  "prom-client": "telemetry/",
  "gpt-tokenizer": "http/",
  hono: "operators/",
  "@hono/node-server": "operators/",
  "@hono/zod-openapi": "operators/",
  zod: "operators/",
};
// What the published package installs. The engine is a program of its own: the service starts it and imports none of it.
const installedPackages = Object.keys(manifest.dependencies);
const concretePart = /^(formats\/[^/]+|deployment\/[^/]+|ledger\/(?:sqlite|postgres))\//u;
const compositionRoot =
  /^(cli\/.*|processes\/.*|gateway\.ts|formats\/formats\.ts|http\/body-worker\.ts)$/u;
const importSpecifier =
  /(?:^|[;\n])\s*(?:import|export)\b[^;"']*?\bfrom\s*"([^"]+)"|\bimport\s*\(\s*"([^"]+)"|(?:^|[;\n])\s*import\s*"([^"]+)"/gu;
const environmentRead =
  /\bprocess\s*(?:\?\.|\.)\s*env\b|\bprocess\s*\[|from\s*"(?:node:)?process"/u;

/** The files that a source file imports, types included, as specifiers: packages and `./` or `../` paths. */
export function importsOf(source: string): string[] {
  return [...source.matchAll(importSpecifier)].map(
    ([, ...specifiers]) => specifiers.find((text) => text !== undefined) ?? "",
  );
}

/** What is wrong with the imports of one source file, named from `src/`; type imports count like any other. */
export function findImportProblems(file: string, source: string): string[] {
  const problems: string[] = [];
  if (file !== "config/environment.ts" && environmentRead.test(source)) {
    problems.push(`${file} reads process.env: add the variable to config/environment.ts instead`);
  }
  const owner = file.split("/")[0] ?? file;
  const allowed = table[owner];
  if (allowed === undefined) return [`${file}: ${owner} has no row in the import table; add one`];

  for (const specifier of importsOf(source)) {
    if (!specifier.startsWith(".")) {
      if (allowed.modules !== undefined && !allowed.modules.includes(specifier)) {
        problems.push(`${file} imports ${specifier}: ${owner} may not`);
      }
      const packageName = /^(?:@[^/]+\/)?[^/]+/u.exec(specifier)?.[0] ?? specifier;
      const home = packageHomes[packageName];
      if (!specifier.startsWith("node:") && !installedPackages.includes(packageName)) {
        problems.push(`${file} imports ${specifier}: it is no dependency of the package`);
      } else if (home !== undefined && !file.startsWith(home)) {
        problems.push(`${file} imports ${specifier}: only ${home} may`);
      }
      continue;
    }
    problems.push(...findLocalProblems(file, posix.join(dirname(file), specifier)));
  }
  return problems;
}

function findLocalProblems(file: string, target: string): string[] {
  if (target.startsWith("../")) return [`${file} imports ${target}, which is outside src/`];
  const problems: string[] = [];
  const owner = file.split("/")[0] ?? file;
  const targetOwner = target.split("/")[0] ?? target;
  const allowed = [owner, ...sharedFiles, ...(table[owner]?.folders ?? [])];
  if (!allowed.includes(targetOwner) || (sharedFiles.includes(owner) && owner !== targetOwner)) {
    problems.push(`${file} imports ${target}: ${owner} may not import ${targetOwner}`);
  }
  const part = concretePart.exec(target)?.[1];
  if (part !== undefined && !file.startsWith(`${part}/`) && !compositionRoot.test(file)) {
    problems.push(
      `${file} names ${part}: only cli/, processes/, gateway.ts, formats/formats.ts and http/body-worker.ts may`,
    );
  }
  return problems;
}
