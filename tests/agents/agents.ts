import { agentRecipes } from "../../src/cli/client-recipes.ts";

/** What the agents' deployment says of its context, and with it the first start. */
export const contextTokens = 131_072;

/** One coding agent as a program: the package it comes in, its version, and how it is asked one thing. */
export interface Agent {
  readonly name: string;
  readonly packageName: string;
  /** A new version of an agent is tried by changing it here. */
  readonly version: string;
  /** The title of its lines in client-recipes.ts. */
  readonly recipe: string;
  /** What follows the recipe's line in the shell: ask once, let all tools run. */
  readonly askOnce: string;
  /** Names of the wire format's routes it may call. */
  readonly route: string;
  /** Whether it asks for a title of the session beside the work. */
  readonly asksForTitle: boolean;
  readonly environment: Readonly<Record<string, string>>;
  /** What is otherwise in the recipe's line: a text, and what stands in its place. */
  readonly instead?: readonly [text: string, otherwise: string];
}

const claudeCode: Agent = {
  name: "Claude Code",
  packageName: "@anthropic-ai/claude-code",
  version: "2.1.329",
  recipe: "Claude Code",
  askOnce: "--allowedTools Read,Bash,Edit -p",
  route: "/v1/messages",
  asksForTitle: false,
  environment: {
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
    DISABLE_TELEMETRY: "1",
    DISABLE_ERROR_REPORTING: "1",
  },
};

const codex: Agent = {
  name: "Codex",
  packageName: "@openai/codex",
  version: "0.169.0",
  recipe: "Codex",
  askOnce: "exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox",
  route: "/v1/responses",
  asksForTitle: false,
  environment: {},
};

const opencode: Agent = {
  name: "opencode",
  packageName: "opencode-ai",
  version: "1.18.33",
  recipe: "opencode",
  askOnce: "run",
  route: "/v1/chat/completions",
  asksForTitle: true,
  environment: {
    OPENCODE_DISABLE_AUTOUPDATE: "1",
    OPENCODE_DISABLE_MODELS_FETCH: "1",
    OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
  },
};

/** The agents that are run, in the order of the table. */
export const agents: readonly Agent[] = [claudeCode, codex, opencode];

/** Codex under names of models that it knows, with which it offers other tools; any name leads to the one deployment. */
export const codexWithKnownModels: readonly Agent[] = [
  // A patch tool that is custom, with a grammar.
  "gpt-5.5",
  // One tool that runs programs, in a namespace, described in an item of the input.
  "gpt-6.1-sol",
].map((model) => ({
  ...codex,
  name: `Codex, model=${model}`,
  askOnce: `-c model=${model} ${codex.askOnce}`,
}));

/** opencode with other packages of its provider, which speak the other formats. */
export const opencodeWithOtherFormats: readonly Agent[] = ["anthropic", "openai"].map((name) => ({
  ...opencode,
  name: `opencode, @ai-sdk/${name}`,
  route: name === "anthropic" ? "/v1/messages" : "/v1/responses",
  instead: ["@ai-sdk/openai-compatible", `@ai-sdk/${name}`],
}));

/** The line for the shell: the one that a first start prints, and after it what makes the agent answer once. */
export function shellLine(
  agent: Agent,
  access: { readonly url: string; readonly key: string },
  prompt: string,
): string {
  const recipe = agentRecipes(access, contextTokens).find(({ title }) => title === agent.recipe);
  if (recipe === undefined) throw new Error(`client-recipes.ts has no lines for ${agent.recipe}`);
  if (prompt.includes("'")) throw new Error("a prompt has no quotation marks");
  const [text, otherwise] = agent.instead ?? ["", ""];
  return `${recipe.text.replace(text, otherwise)} ${agent.askOnce} '${prompt}'`;
}
