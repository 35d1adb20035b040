import { setTimeout as sleep } from "node:timers/promises";
import type { Config } from "../config/config.ts";
import { nearestName } from "../config/nearest-name.ts";
import {
  type Access,
  agentContextTokensMin,
  agentsNeedMore,
  type Client,
  clients,
  type Recipe,
} from "./client-recipes.ts";
import { misuse, type Outcome, type Shell } from "./command.ts";
import { ensureConfig } from "./settings.ts";
import { formatTable } from "./text-table.ts";

const placeholder = "YOUR_KEY";

interface ConnectOptions {
  readonly url?: string | undefined;
  readonly key?: string | undefined;
}

/** `connect` */
export async function connect(
  shell: Shell,
  name: string | null,
  options: ConnectOptions,
): Promise<Outcome> {
  if (name === null) return listClients(shell);
  const client = findClient(name, shell);
  const config = ensureConfig(shell);
  const access = {
    url: addressOf(options.url, config),
    key: options.key ?? config.clientKey ?? placeholder,
  };
  const reach = client.agent ? await findReach(config) : null;
  // Twice the least is what the documents show.
  const contextTokens =
    reach?.fits === true ? (reach.contextTokens ?? 0) : 2 * agentContextTokensMin;
  const recipes = client.recipes(access, contextTokens);
  const deployment = reach === null || reach.fits ? null : describeNeed(reach, contextTokens);
  return {
    json: { client: name, url: access.url, deployment, recipes },
    text: [
      ...notes(access, deployment, shell).map((note) => `${commentOf(recipes[0])} ${note}\n`),
      ...recipes.map((recipe) => `${commentOf(recipe)} ${recipe.title}\n${recipe.text}\n`),
    ].join("\n"),
  };
}

function commentOf(recipe: Recipe | undefined): string {
  return recipe?.language === "js" ? "//" : "#";
}

function listClients(shell: Shell): Outcome {
  const listed = Object.entries(clients).map(([name, { title }]) => ({ name, title }));
  const table = formatTable(listed.map(({ name, title }) => [name, title]));
  return {
    json: listed,
    text: `${table}\nLines for one of them: ${shell.programName} connect CLIENT\n`,
  };
}

function findClient(name: string, shell: Shell): Client {
  const found = Object.entries<Client>(clients).find(([known]) => known === name);
  if (found !== undefined) return found[1];
  const names = Object.keys(clients);
  const near = nearestName(name, names);
  throw misuse(
    `There are no lines for ${JSON.stringify(name)}${near === null ? "" : `, perhaps ${near}`}; known are: ${names.join(", ")}. See: ${shell.programName} connect --help`,
  );
}

function addressOf(url: string | undefined, { host, port }: Config): string {
  if (url !== undefined) {
    if (!/^https?:\/\//.test(url) || URL.parse(url) === null)
      throw misuse(
        `--url ${JSON.stringify(url)} is no address: write it as http://127.0.0.1:8080.`,
      );
    return url.replace(/\/+(?:v1\/*)?$/, "");
  }
  if (port === 0)
    throw misuse("TRIBUTARY_PORT=0 takes another port at each start: give the address with --url.");
  // Every interface is no address that a client can call.
  const reachable = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host;
  return `http://${reachable.includes(":") ? `[${reachable}]` : reachable}:${String(port)}`;
}

function notes(access: Access, deployment: string | null, shell: Shell): readonly string[] {
  const key = access.key === placeholder;
  return [
    ...(key
      ? [`${placeholder} is to be replaced by a key: ${shell.programName} key create ACCOUNT`]
      : []),
    ...(deployment === null ? [] : [deployment]),
  ];
}

interface Reach {
  /** Whether an agent gets through its own instructions. */
  readonly fits: boolean;
  readonly contextTokens: number | null;
  readonly takesTools: boolean | null;
}

/** How long a deployment may take to say what it is. */
const describeWaitMs = 3_000;

async function findReach(config: Config): Promise<Reach> {
  // The small models of the embedded engine are far from enough whatever their context.
  if (config.deployment === null)
    return { fits: false, contextTokens: config.contextTokens, takesTools: null };
  const { openOpenaiCompatibleDeployment } =
    await import("../deployment/openai-compatible/openai-deployment.ts");
  const { newId } = await import("../new-id.ts");
  await using deployment = openOpenaiCompatibleDeployment(config.deployment, {
    now: Date.now,
    newId,
    onLifecycle: () => {},
  });
  const until = performance.now() + describeWaitMs;
  while (!deployment.describe().ready && performance.now() < until) await sleep(50);
  const { contextTokens, ready, takesTools } = deployment.describe();
  const enough = (contextTokens ?? 0) >= agentContextTokensMin;
  return {
    fits: ready && takesTools && enough,
    contextTokens,
    takesTools: ready ? takesTools : null,
  };
}

function describeNeed({ contextTokens, takesTools }: Reach, shownTokens: number): string {
  const context = contextTokens === null ? "unknown" : String(contextTokens);
  const tools = takesTools === null ? "" : takesTools ? ", it takes tools" : ", it takes no tools";
  return `${agentsNeedMore} Context here: ${context}${tools}. The lines are for ${String(shownTokens)} tokens.`;
}
