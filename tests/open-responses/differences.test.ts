import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { rowsOf, readDocument } from "../documents/tables.ts";
import { textAnswer } from "../doubles/scripted-deployment.ts";
import { startService, type TestService } from "../service/start-service.ts";
import { complianceCases } from "./cases.ts";
import { readErrorBody } from "./required.ts";

let started: TestService | null = null;
beforeAll(async () => {
  started = await startService();
});
afterAll(() => started?.[Symbol.asyncDispose]());

function service(): TestService {
  if (started === null) throw new Error("the service has not started");
  return started;
}

const ask = (body: object): Promise<Response> =>
  service().post("/v1/responses", { input: "Hi", ...body });

async function refusedField(body: object): Promise<string | null> {
  const answer = await ask(body);
  expect(answer.status).toBe(400);
  return readErrorBody(await answer.json()).param;
}

const tool = { type: "function", name: "look" };

/** Every difference that the document names, as the service shows it. */
const differences: Readonly<Record<string, () => Promise<void>>> = {
  async "no-done"() {
    const stream = await (await ask({ stream: true })).text();
    expect(stream).not.toContain("[DONE]");
    expect(stream.split("\n\n").at(-2)).toMatch(/^event: response\.completed\n/u);
  },
  async "no-state"() {
    const items = [{ type: "item_reference", id: "msg_1" }];
    expect(await refusedField({ previous_response_id: "resp_1" })).toBe("previous_response_id");
    expect(await refusedField({ conversation: "conv_1" })).toBe("conversation");
    expect(await refusedField({ input: items })).toBe("input[0]");
    expect(await refusedField({ background: true })).toBe("background");
    expect(await (await ask({ store: true })).json()).toMatchObject({ store: false });
  },
  async "no-other-routes"() {
    const { key, url } = service();
    for (const path of ["compact", "resp_1/cancel"]) {
      expect((await service().post(`/v1/responses/${path}`, {})).status).toBe(404);
    }
    const headers = { authorization: `Bearer ${key}` };
    for (const path of ["resp_1", "resp_1/input_items"]) {
      expect((await fetch(`${url}/v1/responses/${path}`, { headers })).status).toBe(404);
    }
  },
  async "error-types"() {
    const { error } = (await (await ask({ input: 7 })).json()) as { error: { type: string } };
    expect(error.type).toBe("invalid_request_error");
  },
  async "no-allowed-tools"() {
    const allowed = { type: "allowed_tools", mode: "auto", tools: [tool] };
    expect(await refusedField({ tools: [tool], tool_choice: allowed })).toBe("tool_choice");
  },
  async "no-json-schema"() {
    const format = { type: "json_schema", name: "x", schema: {} };
    expect(await refusedField({ text: { format } })).toBe("text.format.type");
    const object = await ask({ text: { format: { type: "json_object" } } });
    expect(await object.json()).toMatchObject({ text: { format: { type: "json_object" } } });
  },
  async "tools-of-providers"() {
    const tools = [{ type: "file_search", vector_store_ids: ["vs_1"] }];
    expect(await refusedField({ tools, tool_choice: { type: "file_search" } })).toBe("tool_choice");
    expect((await ask({ tools })).status).toBe(200);
    expect(service().deployment.requests.at(-1)?.body).not.toContain("file_search");
  },
  async "never-truncated"() {
    const answer = await (await ask({ truncation: "auto" })).json();
    expect(answer).toMatchObject({ truncation: "disabled" });
  },
  async ignored() {
    const settings = {
      presence_penalty: 1,
      frequency_penalty: 1,
      top_logprobs: 3,
      max_tool_calls: 2,
    };
    expect(await (await ask(settings)).json()).toMatchObject({
      presence_penalty: 0,
      frequency_penalty: 0,
      top_logprobs: 0,
      max_tool_calls: null,
    });
    const heard = service().deployment.requests.at(-1)?.body;
    for (const name of Object.keys(settings)) expect(heard).not.toContain(name);
  },
  async "custom-tools"() {
    const call = { id: "call_1", name: "patch", arguments: '{"input":"a line"}' };
    service().deployment.answerNext(...textAnswer("", { toolCalls: [call] }));
    const answer = await ask({ tools: [{ type: "custom", name: "patch" }] });
    expect(await answer.json()).toMatchObject({
      output: [{ type: "custom_tool_call", name: "patch", input: "a line" }],
    });
  },
};

describe("where the service differs from Open Responses", () => {
  it.each(Object.entries(differences))("%s", async (_, show) => show());
});

describe("docs/open-responses.md", () => {
  const rows = rowsOf(readDocument("docs/open-responses.md"), /^`/u);

  it("tells every case of the compliance suite as it goes here", () => {
    const told = rows.filter((row) => row.length === 3);
    const wanted = complianceCases.map(({ id, outcome, what }) => [
      `\`${id}\``,
      what,
      outcome === "passes" ? "passes" : `refused, 400 for \`${outcome.refusedFor}\``,
    ]);
    expect(told).toEqual(wanted);
  });

  it("names every difference, and no other", () => {
    const told = rows.filter((row) => row.length === 2).map(([id]) => id);
    expect(told).toEqual(Object.keys(differences).map((id) => `\`${id}\``));
  });
});
