import { type FormatName, headersOf, paths } from "./ask.ts";

/** The same request as code of a client. */
export interface Lines {
  readonly title: string;
  readonly text: string;
}

/** What stands for the key where none is given: the person puts it in. */
const noKey = "YOUR_KEY";

/** The same question as curl and as lines of the official SDKs. */
export function linesOf(order: {
  readonly format: FormatName;
  readonly body: Readonly<Record<string, unknown>>;
  /** Where callers come, without a slash at the end. */
  readonly url: string;
  readonly key: string;
}): readonly Lines[] {
  const { body, format, url } = order;
  const key = order.key === "" ? noKey : order.key;
  return [
    { title: "curl", text: curl(order, key) },
    ...(format === "messages" ? anthropic(body, url, key) : openai(format, body, { url, key })),
  ];
}

function curl({ body, format, url }: Parameters<typeof linesOf>[0], key: string): string {
  const headers = { ...headersOf(format, key), "content-type": "application/json" };
  const options = Object.entries(headers).map(
    ([name, value]) => ` \\\n  -H ${quote(`${name}: ${value}`)}`,
  );
  return `curl -sN ${url}${paths[format]}${options.join("")} \\\n  -d ${quote(JSON.stringify(body))}`;
}

/** One word for a shell, whatever is in it. */
function quote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function openai(
  format: FormatName,
  body: Readonly<Record<string, unknown>>,
  { key, url }: { readonly url: string; readonly key: string },
): readonly Lines[] {
  const call = format === "responses" ? "responses" : "chat.completions";
  const streamed = body["stream"] === true;
  return [
    {
      title: "OpenAI, TypeScript",
      text: `import OpenAI from "openai";
const client = new OpenAI({ baseURL: ${JSON.stringify(`${url}/v1`)}, apiKey: ${JSON.stringify(key)} });
const ${streamed ? "stream" : "answer"} = await client.${call}.create(${JSON.stringify(body, null, 2)});
${streamed ? "for await (const event of stream) console.dir(event, { depth: null });" : "console.dir(answer, { depth: null });"}`,
    },
    {
      title: "OpenAI, Python",
      text: `from openai import OpenAI
client = OpenAI(base_url=${JSON.stringify(`${url}/v1`)}, api_key=${JSON.stringify(key)})
${streamed ? "stream" : "answer"} = client.${call}.create(**${python(body)})
${streamed ? "for event in stream:\n    print(event)" : "print(answer)"}`,
    },
  ];
}

function anthropic(
  body: Readonly<Record<string, unknown>>,
  url: string,
  key: string,
): readonly Lines[] {
  const streamed = body["stream"] === true;
  return [
    {
      title: "Anthropic, TypeScript",
      text: `import Anthropic from "@anthropic-ai/sdk";
const client = new Anthropic({ baseURL: ${JSON.stringify(url)}, apiKey: ${JSON.stringify(key)} });
const ${streamed ? "stream" : "answer"} = await client.messages.create(${JSON.stringify(body, null, 2)});
${streamed ? "for await (const event of stream) console.dir(event, { depth: null });" : "console.dir(answer, { depth: null });"}`,
    },
    {
      title: "Anthropic, Python",
      text: `from anthropic import Anthropic
client = Anthropic(base_url=${JSON.stringify(url)}, api_key=${JSON.stringify(key)})
${streamed ? "stream" : "answer"} = client.messages.create(**${python(body)})
${streamed ? "for event in stream:\n    print(event)" : "print(answer)"}`,
    },
  ];
}

/** A value as Python writes it. */
function python(value: unknown): string {
  if (value === true) return "True";
  if (value === false) return "False";
  if (value === null || value === undefined) return "None";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object") {
    const members = Object.entries(value).map(
      ([name, part]) => `${JSON.stringify(name)}: ${python(part)}`,
    );
    return `{${members.join(", ")}}`;
  }
  return JSON.stringify(value);
}
