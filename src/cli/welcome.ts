import { firstCurl } from "./client-recipes.ts";

/** What the first start says of its account and key. */
export interface FirstKey {
  readonly accountId: string;
  readonly accountName: string;
  /** A decimal string of credits. */
  readonly balance: string;
  readonly key: string;
}

/** What is known when the service has started. */
export interface Started {
  readonly url: string;
  /** What the operator calls the model. */
  readonly model: string;
  /** Whether a generation would be tried now. */
  readonly ready: boolean;
  /** Whether requests cost nothing. */
  readonly free: boolean;
  readonly programName: string;
  /** Signs the first operator in; null: there has been one. */
  readonly loginLink: string | null;
}

/** What the first start shows on a terminal, in 15 lines: where, the key, one request, the console, where the rest is. */
export function describeFirstStart(started: Started, first: FirstKey): string {
  const { programName, ready, url } = started;
  const credit =
    first.balance === "0" && !started.free
      ? `It has no credit yet: ${programName} account credit ${first.accountId} 10\n`
      : "";
  // Where the model is missing, the line that says so has named it.
  const doctor = ready ? `\nIs all well?                 ${programName} doctor` : "";
  // A browser reaches no socket file.
  const page = url.startsWith("unix:") ? "" : `Python, Claude Code ...      ${url}/#/clients\n`;
  return `${describeService(started)}

The key of account ${first.accountId}, ${first.balance} credits, shown this once:
${first.key}
${credit}
Try it:
${firstCurl({ url, key: first.key }).text}
${describeLink(started)}
${page}Lines for other clients      ${programName} connect${doctor}
`;
}

/** What a later start shows on a terminal. */
export function describeStart(started: Started): string {
  const { programName } = started;
  return `
${describeService(started)}
${describeLink(started)}
  Accounts              ${programName} account list
  A new one             ${programName} account create NAME --credit 10
  A key for a client    ${programName} key create ACCOUNT
  Lines for a client    ${programName} connect
  Sign in as operator   ${programName} operator login-link
  Is all well?          ${programName} doctor

`;
}

function describeLink({ loginLink }: Started): string {
  if (loginLink === null) return "";
  return `\nSign in to the console, once and within 15 minutes:\n${loginLink}\n`;
}

function describeService({ model, programName, ready, url }: Started): string {
  const where = `Tributary serves on ${url}`;
  if (ready) return `${where} with ${model}`;
  const answered = "until it is, requests are answered 503 or 529";
  return `${where}\nThe model is not there yet; ${answered}. Why: ${programName} doctor`;
}
