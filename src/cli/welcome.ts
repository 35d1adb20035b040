import {
  type Access,
  agentContextTokensMin,
  agentRecipes,
  agentsNeedMore,
  curlRecipes,
  type Recipe,
  sdkRecipes,
} from "./client-recipes.ts";

/** What the first start says of its account and key. */
export interface FirstKey {
  readonly accountId: string;
  readonly accountName: string;
  /** A decimal string of credits. */
  readonly balance: string;
  readonly key: string;
}

/** What is known of the deployment when the service has started. */
export interface Reach {
  readonly ready: boolean;
  readonly contextTokens: number | null;
  readonly takesTools: boolean;
}

/** What the first start shows on a terminal: where, the key, and lines ready to paste. */
export function describeFirstStart(url: string, first: FirstKey, reach: Reach): string {
  const access: Access = { url, key: first.key };
  return `
Tributary serves on ${url}

  Account  ${first.accountId} (${first.accountName}), ${first.balance} credits
  Key      ${first.key}
           Keep it now: only its hash is stored, and it is not shown again.

${[...curlRecipes(access), ...sdkRecipes(access), ...agents(access, reach)].map(formatRecipe).join("")}${canRunAgents(reach) ? "" : `${agentsNeedMore}\n\n`}${reach.ready ? "" : notReady}`;
}

const notReady =
  "The model is not there yet; until it is, requests are answered 503 (Messages: 529) and clients try again.\n\n";

/** What a later start shows on a terminal. */
export function describeStart(url: string, programName: string): string {
  return `
Tributary serves on ${url}

  A key for a client:  ${programName} key create ACCOUNT   (accounts: ${programName} account list)
  Is all well?         ${programName} doctor

`;
}

function formatRecipe({ text, title }: Recipe): string {
  return `# ${title}\n${text}\n\n`;
}

function agents(access: Access, reach: Reach): readonly Recipe[] {
  return canRunAgents(reach) ? agentRecipes(access, reach.contextTokens) : [];
}

function canRunAgents(reach: Reach): reach is Reach & { readonly contextTokens: number } {
  return reach.takesTools && (reach.contextTokens ?? 0) >= agentContextTokensMin;
}
