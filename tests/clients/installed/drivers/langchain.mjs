import { ChatAnthropic } from "@langchain/anthropic";
import { HumanMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { concat } from "@langchain/core/utils/stream";
import { ChatOpenAI } from "@langchain/openai";
import { runWeather, serve, weather } from "./driver.mjs";

const weatherTool = tool(runWeather, weather);

/** The models, made as LangChain's documentation makes them. */
const models = {
  chat: (order) => new ChatOpenAI(ofOpenAI(order)),
  // Nothing is stored, so reasoning comes and goes sealed.
  responses: (order) =>
    new ChatOpenAI({
      ...ofOpenAI(order),
      useResponsesApi: true,
      zdrEnabled: true,
      // Its own settings of reasoning are for names of models that it knows.
      modelKwargs: { include: ["reasoning.encrypted_content"], reasoning: { summary: "auto" } },
    }),
  messages: ({ url, key, maxRetries }) =>
    new ChatAnthropic({
      model: "service-llm",
      apiKey: key,
      anthropicApiUrl: url,
      maxRetries,
      maxTokens: 1_000,
    }),
};

function ofOpenAI({ url, key, maxRetries }) {
  const configuration = { baseURL: `${url}/v1` };
  return { model: "service-llm", apiKey: key, maxRetries, configuration };
}

async function fold(stream, onText) {
  let whole;
  for await (const chunk of stream) {
    if (chunk.text !== "") onText(chunk.text);
    whole = whole === undefined ? chunk : concat(whole, chunk);
  }
  return whole;
}

function see(message) {
  const { finish_reason, stop_reason, incomplete_details, status } = message.response_metadata;
  const { reasoning_content: ofChat } = message.additional_kwargs;
  const blocks = message.contentBlocks;
  const ofBlocks = blocks.map((block) => (block.type === "reasoning" ? block.reasoning : ""));
  return {
    text: message.text,
    reasoning: ofChat ?? ofBlocks.join(""),
    calls: message.tool_calls.map(({ id, name, args }) => ({ id, name, input: args })),
    finish:
      finish_reason ??
      stop_reason ??
      message.additional_kwargs.stop_reason ??
      incomplete_details?.reason ??
      status,
    inputTokens: message.usage_metadata?.input_tokens,
    outputTokens: message.usage_metadata?.output_tokens,
    vendor: message.tool_calls,
  };
}

async function loop(model, { prompt, way }) {
  const withTools = model.bindTools([weatherTool]);
  const messages = [new HumanMessage(prompt)];
  for (;;) {
    const answer =
      way === "by hand, streamed"
        ? await fold(await withTools.stream(messages), () => undefined)
        : await withTools.invoke(messages);
    if (answer.tool_calls.length === 0) return answer.text;
    messages.push(answer);
    for (const call of answer.tool_calls) messages.push(await weatherTool.invoke(call));
  }
}

async function converse(model, { prompts }) {
  const messages = [];
  const texts = [];
  for (const prompt of prompts) {
    messages.push(new HumanMessage(prompt));
    const answer = await model.invoke(messages);
    messages.push(answer);
    texts.push(answer.text);
  }
  return texts;
}

const png = "data:image/png;base64,iVBORw0KGgo=";

function askForTheImpossible(model) {
  const content = [{ type: "image_url", image_url: { url: png } }];
  return model.invoke([new HumanMessage({ content })]);
}

serve(async (order, { signal, onText }) => {
  const model = models[order.client](order);
  const asked = order.tools === true ? model.bindTools([weatherTool]) : model;
  switch (order.do) {
    case "whole":
      return see(await asked.invoke(order.prompt, { signal }));
    case "streamed":
      return see(await fold(await asked.stream(order.prompt, { signal }), onText));
    case "impossible":
      return askForTheImpossible(model);
    case "converse":
      return converse(model, order);
    case "loop":
      return loop(model, order);
    default:
      throw new Error(`no such order: ${order.do}`);
  }
});
