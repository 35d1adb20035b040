import { createHash } from "node:crypto";
import { variables } from "../config/environment.ts";
import { describeKind, type Variable } from "../config/variable-kinds.ts";
import type { WatchedSetting } from "../operators/watched-service.ts";
import type { Shell } from "./command.ts";

/** Every setting as it is now and where it is from, in the order of the table; secrets are hidden. */
export function showSettings(
  shell: Pick<Shell, "environment" | "isFromFile">,
): readonly WatchedSetting[] {
  const environment = shell.environment();
  return Object.entries<Variable>(variables).map(([name, variable]) => {
    const given = environment[name]?.trim() ?? "";
    // A password may stand in several places of a database's address.
    const secret = variable.secret === true || name === "TRIBUTARY_DATABASE_URL";
    return {
      name,
      value: secret ? null : withoutPassword(given === "" ? variable.default : given),
      source: given === "" ? "default" : shell.isFromFile(name) ? ".env" : "environment",
      secret,
      meaning: variable.meaning,
      allowed: describeKind(variable.kind),
    };
  });
}

/** What replicas of one service may well have of their own: where they are, and how they log. */
const ownNames: ReadonlySet<string> = new Set([
  "TRIBUTARY_HOST",
  "TRIBUTARY_PORT",
  "TRIBUTARY_DATA_DIR",
  "TRIBUTARY_CACHE_DIR",
  "TRIBUTARY_DATABASE_CONNECTIONS",
  "TRIBUTARY_OPERATOR_HOST",
  "TRIBUTARY_OPERATOR_PORT",
  "TRIBUTARY_OPERATOR_URL",
  "TRIBUTARY_PROCESSES",
  "TRIBUTARY_LOG_LEVEL",
  "TRIBUTARY_LOG_FORMAT",
]);

/** A short hash of each setting that replicas have in common: a secret's says only whether it is set. */
export function hashSettings(
  settings: readonly WatchedSetting[],
): Readonly<Record<string, string>> {
  const common = settings.filter(({ name }) => !ownNames.has(name));
  return Object.fromEntries(
    common.map(({ name, secret, source, value }) => {
      const text = secret ? String(source !== "default") : String(value);
      return [name, createHash("sha256").update(`${name}=${text}`).digest("hex").slice(0, 8)];
    }),
  );
}

function withoutPassword(value: string | null): string | null {
  return value?.replace(/\/\/\S*@/, "//...@") ?? null;
}
