/** How a client reaches the service. */
export interface Access {
  /** Without a slash at the end and without `/v1`. */
  readonly url: string;
  readonly key: string;
}

/** Lines that are ready to paste. README.md and docs/clients.md are compared with them by a test. */
export interface Recipe {
  readonly title: string;
  readonly language: "sh" | "js" | "py";
  readonly text: string;
}

/** Tokens of context below which coding agents do not get through their own instructions. */
export const agentContextTokensMin = 65_536;

const question = "Hi!";

/** One request as short as it can be, for the first screen. */
export function firstCurl({ key, url }: Access): Recipe {
  return {
    title: "A first request",
    language: "sh",
    text: `curl ${curlAddress(url)}/v1/chat/completions -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -d '{"messages":[{"role":"user","content":"${question}"}]}'`,
  };
}

/** A unix socket is named beside the address, which then has any host. */
function curlAddress(url: string): string {
  const [, path] = /^unix:(.+)$/.exec(url) ?? [];
  return path === undefined ? url : `--unix-socket ${path} http://localhost`;
}

/** One request of each format, streamed and not. */
export function curlRecipes(access: Access): readonly Recipe[] {
  const messages = [{ role: "user", content: question }];
  const bearer = `Authorization: Bearer ${access.key}`;
  const formats = [
    {
      name: "Chat Completions",
      path: "/v1/chat/completions",
      headers: [bearer],
      body: { model: "service-llm", max_completion_tokens: 64, messages },
    },
    {
      name: "Responses",
      path: "/v1/responses",
      headers: [bearer],
      body: { model: "service-llm", max_output_tokens: 64, input: question },
    },
    {
      name: "Messages",
      path: "/v1/messages",
      headers: [`x-api-key: ${access.key}`, "anthropic-version: 2023-06-01"],
      body: { model: "service-llm", max_tokens: 64, messages },
    },
  ];
  return formats.flatMap(({ name, path, headers, body }) =>
    [false, true].map((stream) => {
      const options = [...headers, "Content-Type: application/json"].map((line) => ` -H '${line}'`);
      const json = JSON.stringify(stream ? { ...body, stream } : body);
      return {
        title: stream ? `${name}, streamed` : name,
        language: "sh" as const,
        text: `curl -sN ${access.url}${path}${options.join("")} -d '${json}'`,
      };
    }),
  );
}

/** The first lines of a program with each of the two official SDKs. */
export function sdkRecipes({ key, url }: Access): readonly Recipe[] {
  return [
    {
      title: "OpenAI SDK",
      language: "js",
      text: `import OpenAI from "openai";
const client = new OpenAI({ baseURL: "${url}/v1", apiKey: "${key}" });
const stream = await client.chat.completions.create({
  model: "service-llm",
  messages: [{ role: "user", content: "${question}" }],
  max_completion_tokens: 64,
  stream: true,
});
for await (const chunk of stream) process.stdout.write(chunk.choices[0]?.delta.content ?? "");`,
    },
    {
      title: "Anthropic SDK",
      language: "js",
      text: `import Anthropic from "@anthropic-ai/sdk";
const client = new Anthropic({ baseURL: "${url}", apiKey: "${key}" });
const stream = await client.messages.create({
  model: "service-llm",
  messages: [{ role: "user", content: "${question}" }],
  max_tokens: 64,
  stream: true,
});
for await (const event of stream) {
  if (event.type === "content_block_delta" && event.delta.type === "text_delta")
    process.stdout.write(event.delta.text);
}`,
    },
  ];
}

/** The same with the two official packages for Python. */
export function pythonRecipes({ key, url }: Access): readonly Recipe[] {
  return [
    {
      title: "openai for Python",
      language: "py",
      text: `from openai import OpenAI

client = OpenAI(base_url="${url}/v1", api_key="${key}")
stream = client.chat.completions.create(
    model="service-llm",
    messages=[{"role": "user", "content": "${question}"}],
    max_completion_tokens=64,
    stream=True,
)
for chunk in stream:
    print(chunk.choices[0].delta.content or "", end="", flush=True)`,
    },
    {
      title: "anthropic for Python",
      language: "py",
      text: `from anthropic import Anthropic

client = Anthropic(base_url="${url}", api_key="${key}")
with client.messages.stream(
    model="service-llm",
    max_tokens=64,
    messages=[{"role": "user", "content": "${question}"}],
) as stream:
    for text in stream.text_stream:
        print(text, end="", flush=True)`,
    },
  ];
}

/** Libraries that are built on the official SDKs. */
export function frameworkRecipes({ key, url }: Access): readonly Recipe[] {
  return [
    {
      title: "LangChain's ChatOpenAI",
      language: "js",
      text: `import { ChatOpenAI } from "@langchain/openai";
const model = new ChatOpenAI({
  model: "service-llm",
  apiKey: "${key}",
  maxTokens: 64,
  configuration: { baseURL: "${url}/v1" },
});
for await (const chunk of await model.stream("${question}"))
  process.stdout.write(chunk.text);`,
    },
    {
      title: "LangChain's ChatAnthropic",
      language: "js",
      text: `import { ChatAnthropic } from "@langchain/anthropic";
const model = new ChatAnthropic({
  model: "service-llm",
  apiKey: "${key}",
  maxTokens: 64,
  anthropicApiUrl: "${url}",
});
for await (const chunk of await model.stream("${question}"))
  process.stdout.write(chunk.text);`,
    },
    {
      title: "OpenAI Agents SDK",
      language: "js",
      text: `import { Agent, OpenAIProvider, Runner } from "@openai/agents";
const modelProvider = new OpenAIProvider({ baseURL: "${url}/v1", apiKey: "${key}" });
const runner = new Runner({ modelProvider, tracingDisabled: true });
const agent = new Agent({ name: "assistant", model: "service-llm" });
const { finalOutput } = await runner.run(agent, "${question}");
console.log(finalOutput);`,
    },
  ];
}

/** Coding agents, which need much context and a model that calls tools. */
export function agentRecipes({ key, url }: Access, contextTokens: number): readonly Recipe[] {
  const outputTokens = Math.min(32_768, Math.floor(contextTokens / 4));
  const opencode = {
    model: "tributary/service-llm",
    provider: {
      tributary: {
        npm: "@ai-sdk/openai-compatible",
        name: "Tributary",
        options: { baseURL: `${url}/v1`, apiKey: key },
        models: {
          "service-llm": {
            name: "service-llm",
            limit: { context: contextTokens, output: outputTokens },
          },
        },
      },
    },
  };
  return [
    {
      title: "Claude Code",
      language: "sh",
      text: `ANTHROPIC_BASE_URL=${url} ANTHROPIC_AUTH_TOKEN=${key} ANTHROPIC_MODEL=service-llm CLAUDE_CODE_MAX_CONTEXT_TOKENS=${String(contextTokens)} claude`,
    },
    {
      title: "Codex",
      language: "sh",
      text: `SERVICE_KEY=${key} codex -c model=service-llm -c model_context_window=${String(contextTokens)} -c model_provider=tributary -c 'model_providers.tributary={name="Tributary", base_url="${url}/v1", env_key="SERVICE_KEY", wire_api="responses"}'`,
    },
    {
      title: "opencode",
      language: "sh",
      text: `OPENCODE_CONFIG_CONTENT='${JSON.stringify(opencode)}' opencode`,
    },
  ];
}

/** What is said instead of the agents' lines when the deployment is too small for them. */
export const agentsNeedMore =
  "Claude Code, Codex and opencode need a deployment that takes tools and has at least 65,536 tokens of context, such as vLLM with a coding model: set TRIBUTARY_DEPLOYMENT_URL to it.";

/** A client that lines are known for. `agent`: it needs much context and a model that calls tools. */
export interface Client {
  readonly title: string;
  readonly agent: boolean;
  recipes(access: Access, contextTokens: number): readonly Recipe[];
}

/** Each by the name that `connect` takes; callers see the same in the page at the service's address. */
export const clients = {
  curl: { title: "each format, streamed and not", agent: false, recipes: curlRecipes },
  python: { title: "openai and anthropic for Python", agent: false, recipes: pythonRecipes },
  typescript: { title: "openai and @anthropic-ai/sdk", agent: false, recipes: sdkRecipes },
  langchain: {
    title: "ChatOpenAI and ChatAnthropic of LangChain",
    agent: false,
    recipes: (access: Access) => frameworkRecipes(access).slice(0, 2),
  },
  "openai-agents": {
    title: "OpenAI Agents SDK",
    agent: false,
    recipes: (access: Access) => frameworkRecipes(access).slice(2),
  },
  claude: { title: "Claude Code", agent: true, recipes: agent(0) },
  codex: { title: "Codex", agent: true, recipes: agent(1) },
  opencode: { title: "opencode", agent: true, recipes: agent(2) },
} as const satisfies Record<string, Client>;

function agent(index: number): Client["recipes"] {
  return (access, contextTokens) => agentRecipes(access, contextTokens).slice(index, index + 1);
}
