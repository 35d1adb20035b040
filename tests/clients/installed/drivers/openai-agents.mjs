import { Agent, OpenAIProvider, Runner, tool } from "@openai/agents";
import OpenAI from "openai";
import { runWeather, serve, weather } from "./driver.mjs";

/** Runs on the service, without traces, which would go to OpenAI. */
function runnerOf({ client, url, key, maxRetries }) {
  const openAIClient = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries });
  const useResponses = client === "responses";
  const modelProvider = new OpenAIProvider({ openAIClient, useResponses });
  return new Runner({ modelProvider, tracingDisabled: true });
}

const shape = {
  name: weather.name,
  description: weather.description,
  parameters: weather.schema,
  strict: false,
};
const runs = tool({ ...shape, execute: (input) => runWeather(input) });
/** A call of it waits for a person, so that the run ends with it. */
const waits = tool({ ...shape, needsApproval: true, execute: (input) => runWeather(input) });

function agentOf({ client }, tools = []) {
  return new Agent({
    name: "assistant",
    model: "service-llm",
    tools,
    modelSettings:
      client === "responses"
        ? // Nothing is stored, so reasoning comes and goes sealed.
          {
            store: false,
            reasoning: { summary: "auto" },
            providerData: { include: ["reasoning.encrypted_content"] },
          }
        : {},
  });
}

async function stream(runner, agent, { input, signal, onText }) {
  const result = await runner.run(agent, input, { stream: true, signal });
  for await (const event of result) {
    const { data, type } = event;
    if (type === "raw_model_stream_event" && data.type === "output_text_delta") onText(data.delta);
  }
  await result.completed;
  if (result.error) throw result.error;
  return result;
}

function see(result) {
  const { output, usage } = result.rawResponses.at(-1);
  const textOf = (type) =>
    output
      .filter((item) => item.type === type)
      .flatMap((item) => item.content)
      .map(({ text }) => text ?? "")
      .join("");
  const calls = output.filter(({ type }) => type === "function_call");
  return {
    text: textOf("message"),
    reasoning: textOf("reasoning"),
    calls: calls.map(({ callId, name, arguments: json }) => ({
      id: callId,
      name,
      input: JSON.parse(json),
    })),
    finish: null,
    inputTokens: usage.inputTokens,
    outputTokens: usage.outputTokens,
    vendor: { calls: calls.map((call) => call.arguments) },
  };
}

async function converse(runner, agent, { prompts }) {
  let history = [];
  const texts = [];
  for (const prompt of prompts) {
    const result = await runner.run(agent, [...history, { role: "user", content: prompt }]);
    ({ history } = result);
    texts.push(result.finalOutput);
  }
  return texts;
}

serve(async (order, { signal, onText }) => {
  const runner = runnerOf(order);
  const asked = agentOf(order, order.tools === true ? [waits] : []);
  switch (order.do) {
    case "whole":
      return see(await runner.run(asked, order.prompt, { signal }));
    case "streamed":
      return see(await stream(runner, asked, { input: order.prompt, signal, onText }));
    case "impossible":
      return runner.run(asked, [
        {
          role: "user",
          content: [{ type: "input_image", image: "data:image/png;base64,iVBORw0KGgo=" }],
        },
      ]);
    case "converse":
      return converse(runner, asked, order);
    case "loop": {
      const agent = agentOf(order, [runs]);
      const result =
        order.way === "run, streamed"
          ? await stream(runner, agent, { input: order.prompt, onText: () => undefined })
          : await runner.run(agent, order.prompt);
      return result.finalOutput;
    }
    default:
      throw new Error(`no such order: ${order.do}`);
  }
});
