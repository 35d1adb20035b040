import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { expectRefusal, type RefusalCode, shapeOf, withoutTrace } from "./refusals.ts";
import { formats, type PostInit, startService, type TestService } from "./start-service.ts";

const mebibyte = 1024 * 1024;
const countPath = "/v1/messages/count_tokens";
const doors = [
  ...formats.map(({ name, path, body }) => ({ name, path, body })),
  { name: "count_tokens", path: countPath, body: { messages: [{ role: "user", content: "Hi" }] } },
];

let service: TestService;
beforeAll(async () => {
  service = await startService({
    deployment: { contextTokens: null },
    environment: {
      TRIBUTARY_REQUESTS_PER_MINUTE: "100000",
      TRIBUTARY_TRUSTED_PROXIES: "127.0.0.1, ::1",
    },
  });
});
afterAll(() => service[Symbol.asyncDispose]());

let addresses = 0;
/** A header that makes requests those of an address of their own: wrong keys of one address are bounded. */
function fromElsewhere(): Readonly<Record<string, string>> {
  addresses += 1;
  return { "x-forwarded-for": `192.0.2.${String(addresses)}` };
}

/** A post that must be refused so, and leave nothing behind. */
async function refused(
  path: string,
  body: unknown,
  expected: { readonly code: RefusalCode; readonly param?: string | RegExp; readonly says: RegExp },
  init?: PostInit,
): Promise<Record<string, unknown>> {
  return withoutTrace(service, async () => {
    const response = await service.post(path, body, init);
    return expectRefusal(response, { shape: shapeOf(path), ...expected });
  });
}

/** A post that must be served; returns what the deployment got. */
async function served(path: string, body: unknown): Promise<Record<string, unknown>> {
  const sent = service.deployment.requests.length;
  const response = await service.post(path, body);
  expect(response.status, (await response.text()).slice(0, 500)).toBe(200);
  expect((await service.settledCredit()).held).toBe(0n);
  if (path === countPath) {
    expect(service.deployment.requests.length).toBe(sent);
    return {};
  }
  expect(service.deployment.requests.length).toBe(sent + 1);
  return service.deployment.requests.at(-1)?.json as Record<string, unknown>;
}

/** The same body with the text of its one message made so long that the JSON has exactly so many bytes. */
function bodyOfBytes(path: string, bytes: number): string {
  const field = path === "/v1/responses" ? "input" : "messages";
  const build = (text: string): string =>
    JSON.stringify({ [field]: [{ role: "user", content: text }] });
  return build("a".repeat(bytes - build("").length));
}

describe.each(doors)("the body of $name", ({ path, body }) => {
  it("may have 4 MiB, and not one byte more", async () => {
    const most = bodyOfBytes(path, 4 * mebibyte);
    if (path === countPath) await served(path, most);
    else
      await refused(path, most, {
        code: "input_too_large",
        says: /2000000.*Send fewer or shorter/,
      });
    const says = /larger than 4194304 bytes \(4 MiB\)\. Send a shorter/;
    await refused(path, `${most} `, { code: "body_too_large", says });
  });

  it("in chunks without a length has the same limit", async () => {
    const pieces = (bytes: number): ReadableStream =>
      ReadableStream.from(
        (function* () {
          const text = Buffer.from(bodyOfBytes(path, bytes));
          for (let at = 0; at < text.length; at += 50_000) yield text.subarray(at, at + 50_000);
        })(),
      );
    const post = (bytes: number): Promise<Response> =>
      fetch(service.url + path, {
        method: "POST",
        headers: { authorization: `Bearer ${service.key}` },
        body: pieces(bytes),
        duplex: "half",
      });
    const shape = shapeOf(path);
    await withoutTrace(service, async () => {
      const over = await post(4 * mebibyte + 1);
      await expectRefusal(over, { code: "body_too_large", shape, says: /4 MiB/ });
      const far = await post(12 * mebibyte);
      await expectRefusal(far, { code: "body_too_large", shape, says: /4 MiB/ });
    });
    expect((await post(1_000_000)).status).toBe(200);
    await service.settledCredit();
  });

  it("must be JSON by its content-type", async () => {
    const text = JSON.stringify(body);
    for (const type of [
      "text/plain",
      "multipart/form-data; boundary=x",
      "application/x-www-form-urlencoded",
      "application/jsonp",
      "",
    ])
      await refused(
        path,
        text,
        { code: "unsupported_media_type", says: /content-type: application\/json/ },
        { headers: { "content-type": type } },
      );
    await refused(
      path,
      text,
      { code: "unsupported_media_type", says: /UTF-8/ },
      { headers: { "content-type": "application/json; charset=utf-16" } },
    );
    for (const type of [
      'application/json; charset="UTF-8"',
      "application/json; charset=utf-8",
      "APPLICATION/JSON",
      "application/x+json",
    ])
      expect((await service.post(path, text, { headers: { "content-type": type } })).status).toBe(
        200,
      );
    // Bytes of a fetch carry no content-type of their own.
    const bare = await fetch(service.url + path, {
      method: "POST",
      headers: { "x-api-key": service.key },
      body: Buffer.from(text),
    });
    expect(bare.status).toBe(200);
    await service.settledCredit();
  });

  it("must not be compressed, whatever is in it", async () => {
    for (const encoding of ["gzip", "br", "deflate", "identity, gzip", "GZIP", "x"])
      await refused(
        path,
        JSON.stringify(body),
        { code: "unsupported_media_type", says: /without `content-encoding`/ },
        { headers: { "content-encoding": encoding } },
      );
    const identity = { headers: { "content-encoding": "identity" } };
    expect((await service.post(path, body, identity)).status).toBe(200);
    await service.settledCredit();
  });

  it.each([
    ["nothing", "", /empty: send a JSON object/],
    ["blanks", " \n\t ", /empty: send a JSON object/],
    ["half an object", '{"messages":[', /not valid JSON/],
    ["two objects", "{}{}", /not valid JSON/],
    ["a single quote", "{'a':1}", /not valid JSON/],
    ["a comment", "{}//", /not valid JSON/],
    ["NaN", '{"temperature":NaN}', /not valid JSON/],
    ["a raw line feed in a string", '{"model":"a\nb"}', /not valid JSON/],
    ["an array", "[]", /must be a JSON object/],
    ["a string", '"{}"', /must be a JSON object/],
    ["null", "null", /must be a JSON object/],
    ["a number", "1", /must be a JSON object/],
    ["UTF-16", Buffer.from('{"a":1}', "utf16le"), /not valid JSON/],
    ["a cut UTF-8 character", Buffer.from([0x7b, 0x22, 0xc3, 0x22, 0x7d]), /not valid UTF-8/],
    [
      "a surrogate in UTF-8",
      Buffer.from([0x7b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x7d]),
      /not valid UTF-8/,
    ],
    ["an overlong slash", Buffer.from([0x7b, 0x22, 0xc0, 0xaf, 0x22, 0x7d]), /not valid UTF-8/],
    ["gzip", Buffer.from([0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0]), /not valid UTF-8/],
    ["opening brackets", "[".repeat(250_000), /not valid JSON/],
    ["more opening brackets", "[".repeat(300_000), /more than 262144 values/],
  ])("that is %s is refused", async (_name, bytes, says) => {
    await refused(path, bytes, { code: "invalid_request", says });
  });

  it("may nest 64 levels, not 65, not two hundred thousand", async () => {
    const nested = (levels: number): string =>
      `${JSON.stringify(body).slice(0, -1)},"x_nested":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`;
    await served(path, nested(64));
    const says = /nested deeper than 64 levels/;
    await refused(path, nested(65), { code: "invalid_request", says });
    await refused(path, nested(200_000), { code: "invalid_request", says });
    const objects = `${JSON.stringify(body).slice(0, -1)},"x":${'{"a":'.repeat(64)}1${"}".repeat(64)}}`;
    await refused(path, objects, { code: "invalid_request", says });
  });

  it("may begin with a byte order mark", async () => {
    await served(path, `\uFEFF${JSON.stringify(body)}`);
  });
});

describe.each(formats)("the counted limits of $name", ({ name, path, body, outputField }) => {
  const field = name === "responses" ? "input" : "messages";

  it("take 2,000 items, not 2,001", async () => {
    const items = (count: number): unknown => ({
      [field]: Array.from({ length: count }, () => ({ role: "user", content: "a" })),
    });
    await served(path, items(2_000));
    const says = /2001 elements; at most 2000.*Leave out/;
    await refused(path, items(2_001), { code: "invalid_request", param: field, says });
    const none = { code: "invalid_request", param: field, says: /at least one/ } as const;
    await refused(path, { [field]: [] }, none);
  });

  const tool = (toolName: string, description = ""): unknown => {
    if (name === "messages") return { name: toolName, description, input_schema: {} };
    const definition = { name: toolName, description, parameters: {} };
    return name === "responses"
      ? { type: "function", ...definition }
      : { type: "function", function: definition };
  };

  it("take 128 tools, not 129", async () => {
    const tools = (count: number): unknown => ({
      ...body,
      tools: Array.from({ length: count }, (_, index) => tool(`tool_${String(index)}`)),
    });
    expect((await served(path, tools(128)))["tools"]).toHaveLength(128);
    const says = /129 tools were sent; at most 128.*Leave some out/;
    await refused(path, tools(129), { code: "invalid_request", param: "tools", says });
  });

  it("take 1 MiB of tools, not one byte more", async () => {
    const tools = (bytes: number): unknown => {
      const bare = Buffer.byteLength(JSON.stringify([tool("big")]));
      return { ...body, tools: [tool("big", "a".repeat(bytes - bare))] };
    };
    await served(path, tools(mebibyte));
    const says = /1048577 bytes of JSON; at most 1048576.*Shorten/;
    await refused(path, tools(mebibyte + 1), { code: "invalid_request", param: "tools", says });
  });

  it("take a bound of 2,000,000, not one more", async () => {
    await served(path, bodyOfBytes(path, 2_000_000 - 64 - 16));
    const error = await refused(path, bodyOfBytes(path, 2_000_000 - 64 - 16 + 1), {
      code: "input_too_large",
      says: /2000001.*2000000.*Send fewer or shorter messages/,
    });
    if (name === "messages")
      expect(error["message"]).toMatch(/^prompt is too long: 2000001 tokens > 2000000 maximum\b/);
  });

  it("take numbers that no double holds for what they are", async () => {
    const text = JSON.stringify(body).slice(0, -1);
    const limitSent = await served(path, `${text},"${outputField}":1e400}`);
    expect(limitSent["max_tokens"] ?? limitSent["max_completion_tokens"]).toBe(65_536);
    for (const [value, says] of [
      ["1e400", /number from 0 to/],
      ["-1e400", /number from 0 to/],
      ["9007199254740993", /number from 0 to/],
      ['"0.5"', /must be a number from 0 to/],
    ] as const)
      await refused(path, `${text},"temperature":${value}}`, {
        code: "invalid_request",
        param: "temperature",
        says,
      });
    for (const value of ["-1", "0", "0.5", "-1e400", "1e-400"])
      await refused(path, `${text},"${outputField}":${value}}`, {
        code: "invalid_request",
        param: outputField,
        says: /whole number from 1/,
      });
    await served(path, `${text},"x_unknown":[1e400,-1e400,9007199254740993,1e-400,-0]}`);
  });

  it("take the last of duplicate keys", async () => {
    const text = JSON.stringify(body).slice(0, -1);
    const sent = await served(path, `${text},"${outputField}":5,"${outputField}":9}`);
    expect(sent["max_tokens"] ?? sent["max_completion_tokens"]).toBe(9);
    const last = `{"${field}":7,${text.slice(1)}}`;
    await served(path, last);
    await refused(path, `${text},"${field}":7}`, {
      code: "invalid_request",
      param: field,
      says: /must be/,
    });
  });

  it("take lone surrogates without breaking their neighbours", async () => {
    const text = JSON.stringify(body).replace("Hi", "a\\ud800b\\udc00c\\u0000d");
    await served(path, text);
    // No tokenizer can read half a character: the model gets the sign for one that is lost.
    expect(service.deployment.requests.at(-1)?.body).toContain("a\uFFFDb\uFFFDc\\u0000d");
    const model = await service.post(path, `${text.slice(0, -1)},"model":"\\ud800"}`);
    expect(model.status).toBe(200);
    expect(await model.text()).toContain('"model":"\\ud800"');
    await service.settledCredit();
  });

  it("take __proto__ as a field like any other", async () => {
    const text = JSON.stringify(body).slice(0, -1);
    const poison =
      '"__proto__":{"stream":true,"polluted":1},"constructor":{"prototype":{"polluted":1}}';
    const response = await service.post(path, `${text},${poison}}`);
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toContain("application/json");
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    await response.text();
    await refused(path, `{"__proto__":${JSON.stringify(body)}}`, {
      code: "invalid_request",
      param: field,
      says: /is missing/,
    });
  });

  it("hand __proto__ and its like in a tool's schema to the model", async () => {
    const schema =
      '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{}}}';
    const definition = JSON.stringify(tool("t")).replace("{}", schema);
    await served(path, `${JSON.stringify(body).slice(0, -1)},"tools":[${definition}]}`);
    expect(service.deployment.requests.at(-1)?.body).toContain(schema);
  });
});

describe("keys", () => {
  const says = /Send it whole.*Authorization: Bearer KEY.*x-api-key: KEY/;
  const half = (text: string): string => text.slice(0, text.length >> 1);

  it.each(doors)("of $name that are no keys are 401 before the body is read", async ({ path }) => {
    const secret = service.key;
    const other = secret.endsWith("a") ? "b" : "a";
    const wrongs: readonly Record<string, string>[] = [
      {},
      { authorization: "" },
      { authorization: "Bearer" },
      { authorization: "Bearer " },
      { authorization: secret },
      { authorization: `Basic ${Buffer.from(`x:${secret}`).toString("base64")}` },
      { authorization: `Bearer ${secret} ${secret}` },
      { authorization: `Bearer ${half(secret)}` },
      { authorization: `Bearer ${secret.slice(0, -1)}${other}` },
      { authorization: `Bearer ${secret}${other}` },
      { authorization: `Bearer ${secret.toUpperCase()}` },
      { authorization: `Bearer trib_a_b_${"c".repeat(43)}` },
      { authorization: `Bearer trib_' or 1=1 --` },
      { authorization: `Bearer ${"x".repeat(10_000)}` },
      { "x-api-key": "" },
      { "x-api-key": half(secret) },
      { "x-api-key": `Bearer ${secret}` },
    ];
    const elsewhere = fromElsewhere();
    await withoutTrace(service, async () => {
      for (const wrong of wrongs) {
        const headers = { ...wrong, ...elsewhere };
        // What no limit lets pass: the body must not matter.
        const response = await service.post(path, "x", { key: null, headers });
        await expectRefusal(response, { code: "authentication", shape: shapeOf(path), says });
        expect(response.headers.get("x-ratelimit-limit-requests")).toBeNull();
      }
    });
  });

  it.each(doors)("of $name work in either header, in any case", async ({ path, body }) => {
    for (const headers of [
      { authorization: `Bearer ${service.key}` },
      { Authorization: `bearer ${service.key}` },
      { authorization: `BEARER   ${service.key}` },
      { "X-Api-Key": service.key },
    ]) {
      const response = await service.post(path, body, { key: null, headers });
      expect(response.status).toBe(200);
      await response.text();
    }
    await service.settledCredit();
  });

  it.each(doors)("that differ: $name knows which of the two counts", async ({ path, body }) => {
    const good = service.key;
    const bad = `trib_a_b_${"c".repeat(43)}`;
    const messages = shapeOf(path) === "messages";
    const works = messages
      ? { "x-api-key": good, authorization: `Bearer ${bad}` }
      : { "x-api-key": bad, authorization: `Bearer ${good}` };
    expect((await service.post(path, body, { key: null, headers: works })).status).toBe(200);
    await service.settledCredit();
    const fails = messages
      ? { "x-api-key": bad, authorization: `Bearer ${good}` }
      : { "x-api-key": good, authorization: `Bearer ${bad}` };
    await refused(
      path,
      body,
      { code: "authentication", says },
      { key: null, headers: { ...fails, ...fromElsewhere() } },
    );
  });

  it.each(doors)("of $name are refused once revoked, and 403 when disabled", async (door) => {
    const { key, accountId } = await service.newKey("10");
    const { record, secret } = await service.ledger.createKey(accountId, "second");
    const { path, body } = door;
    const headers = fromElsewhere();
    expect((await service.post(path, body, { key: secret })).status).toBe(200);
    await service.settledCredit(accountId);
    await service.ledger.revokeKey(record.id);
    const revoked = { code: "authentication", says: /revoked. Ask the operator/ } as const;
    await refused(path, body, revoked, { key: secret, headers });
    expect((await service.post(path, body, { key })).status).toBe(200);
    await service.settledCredit(accountId);
    await service.ledger.setAccountStatus(accountId, "disabled");
    const disabled = { code: "account_disabled", says: /disabled. Ask the operator/ } as const;
    await refused(path, body, disabled, { key });
    await refused(path, body, revoked, { key: secret, headers });
    await service.ledger.setAccountStatus(accountId, "active");
    expect((await service.post(path, body, { key })).status).toBe(200);
    await service.settledCredit(accountId);
  });
});

describe("requests that are no generation", () => {
  const ask = (method: string, path: string, headers: Record<string, string> = {}) =>
    fetch(service.url + path, { method, headers });

  it.each(doors)("of $name by another method are 405", async ({ path }) => {
    for (const method of ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"]) {
      const response = await withoutTrace(service, () => ask(method, path));
      expect(response.headers.get("allow")).toBe("POST");
      if (method === "HEAD") {
        expect(response.status).toBe(405);
        expect(await response.text()).toBe("");
      } else {
        const shape = shapeOf(path);
        const says = new RegExp(`${method} is not offered here. Use POST`);
        await expectRefusal(response, { code: "method_not_allowed", shape, says });
      }
    }
  });

  it("may be HEAD wherever they may be GET", async () => {
    for (const path of ["/", "/healthz", "/readyz", "/v1/models", "/v1/models/x", "/metrics"]) {
      const response = await ask("HEAD", path);
      expect(response.status).toBe(200);
      expect(await response.text()).toBe("");
      expect(response.headers.get("x-request-id")).toMatch(/^req_/);
    }
  });

  it("may be in either shape, by path or by header", async () => {
    const notFound = {
      code: "not_found",
      says: /does not offer this path. It offers POST/,
    } as const;
    await expectRefusal(await ask("GET", "/v1/files"), { ...notFound, shape: "openai" });
    const version = { "anthropic-version": "2023-06-01" };
    await expectRefusal(await ask("GET", "/v1/files", version), { ...notFound, shape: "messages" });
    await expectRefusal(await ask("GET", "/v1/messages/batches"), {
      ...notFound,
      shape: "messages",
    });
    await expectRefusal(await ask("GET", "/nothing"), {
      code: "not_found",
      shape: "openai",
      says: /begin with \/v1\//,
    });
    for (const path of ["/v1/chat/completions/", "/v1/Messages", "//v1/messages", "/v1%2Fmessages"])
      expect((await service.post(path, {})).status, path).toBe(404);
  });

  it("may name a model with malformed percent signs, and hear that it is none", async () => {
    for (const id of ["%", "%zz", "%E0%A4%A", "%C0%AF", "a%", "%80"])
      await expectRefusal(await ask("GET", `/v1/models/${id}`), {
        code: "not_found",
        shape: "openai",
        says: /1 to 256 characters. Use service-llm/,
      });
    const unusual = encodeURIComponent("../../etc/passwd\u0000?#");
    expect(await (await ask("GET", `/v1/models/${unusual}`)).json()).toMatchObject({
      id: "../../etc/passwd\u0000?#",
    });
  });
});
