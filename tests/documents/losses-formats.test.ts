import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Fate, Loss } from "./losses/tables/format-losses.ts";
import type { WireFormatName } from "../../src/formats/wire-format.ts";
import { isRecord, type JsonRecord } from "../cases/files.ts";
import { textAnswer } from "../doubles/scripted-deployment.ts";
import { formats, startService, type TestService } from "../service/start-service.ts";
import type { AnswerSeen, Example, SealedReasoning } from "./losses/example.ts";
import { examplesOf } from "./losses/examples.ts";
import { formatLosses } from "./losses/formats.ts";
import { changeAt, valuesAt, withoutPlace } from "./losses/places.ts";

const reasoning = "Let me think";
let service: TestService;
let seal: SealedReasoning;

beforeAll(async () => {
  service = await startService({
    // A known context would make the allowance a function of the body's length.
    deployment: { contextTokens: null },
    environment: { TRIBUTARY_REQUESTS_PER_MINUTE: "1000000" },
  });
  service.deployment.answerAlways(...textAnswer("So.", { reasoning }));
  seal = await askForSeal();
});
afterAll(() => service[Symbol.asyncDispose]());

type Body = Readonly<JsonRecord>;

/** What came of a request: what the deployment got, if anything, and what the client got. */
interface Outcome extends AnswerSeen {
  readonly status: number;
  readonly upstream: string | null;
}

const outcomes = new Map<string, Promise<Outcome>>();

/** Asks the service, once for each body. */
function ask(format: WireFormatName, send: Body): Promise<Outcome> {
  const { body, path } = formats.find(({ name }) => name === format) ?? formats[0];
  const text = JSON.stringify({ ...body, ...send });
  const known = outcomes.get(path + text);
  if (known !== undefined) return known;
  const asked = askNow(path, text);
  outcomes.set(path + text, asked);
  return asked;
}

async function askNow(path: string, body: string): Promise<Outcome> {
  const sent = service.deployment.requests.length;
  const response = await service.post(path, body);
  const text = await response.text();
  const { requests } = service.deployment;
  expect(requests.length - sent, `${body}: ${text}`).toBe(response.ok ? 1 : 0);
  const type = response.headers.get("content-type") ?? "";
  return { status: response.status, type, text, upstream: requests[sent]?.body ?? null };
}

async function askForSeal(): Promise<SealedReasoning> {
  const include = ["reasoning.encrypted_content"];
  const sealed = await ask("responses", { include });
  const signed = await ask("messages", {});
  const find = (text: string, name: string): string =>
    new RegExp(`"${name}":"([^"]+)"`, "u").exec(text)?.[1] ?? "";
  return {
    text: reasoning,
    encryptedContent: find(sealed.text, "encrypted_content"),
    signature: find(signed.text, "signature"),
  };
}

/** A request with an example, and one without the fields that the example is about. */
interface Trial {
  readonly format: WireFormatName;
  readonly row: Loss;
  readonly send: Body;
}

/** Unknown kinds of content are called so in the examples. */
function placeOf(field: string): string {
  return field.replaceAll("[*]", "[unknown]");
}

function without(send: Body, fields: readonly string[]): Body {
  const left = fields.reduce<unknown>((body, field) => withoutPlace(body, placeOf(field)), send);
  if (!isRecord(left)) throw new Error("nothing is left");
  return left;
}

const awkward: readonly unknown[] = [
  null,
  false,
  -1.5,
  "required",
  [{ type: "json_schema" }],
  { type: "json_schema", stream: true, model: "other", messages: [], max_tokens: 1 },
];

type Check<Is extends Fate> = (trial: Trial, example: Example<Is>) => Promise<void>;

async function expectArrival(
  { format, row, send }: Trial,
  { arrives }: Example<"carried" | "converted">,
): Promise<void> {
  const { status, text, upstream } = await ask(format, send);
  expect(status, text).toBe(200);
  const got: unknown = JSON.parse(upstream ?? "null");
  if (!isRecord(got)) throw new Error("the deployment got no object");
  for (const [name, value] of Object.entries(arrives)) {
    expect(got[name] ?? null, name).toEqual(value);
  }
  if (row.fate !== "carried") return;
  for (const value of row.fields.flatMap((field) => valuesAt(send, placeOf(field)))) {
    const isDefault = ["auto", null].includes(value as null) || Object.values(arrives)[0] === null;
    if (typeof value === "object" || isDefault) continue;
    expect(holds(got, value), `${JSON.stringify(value)} in ${upstream ?? ""}`).toBe(true);
  }
}

/** Whether a value stands somewhere in another, a text as a part of a text. */
function holds(where: unknown, value: unknown): boolean {
  if (where === value) return true;
  if (typeof where === "string") return typeof value === "string" && where.includes(value);
  if (typeof where !== "object" || where === null) return false;
  return Object.values(where).some((entry) => holds(entry, value));
}

const checks: { readonly [Is in Fate]: Check<Is> } = {
  carried: expectArrival,
  converted: expectArrival,
  async served({ format, row, send }, { shows }) {
    const plain = await ask(format, without(send, row.fields));
    const asked = await ask(format, send);
    expect(asked.upstream).toBe(plain.upstream);
    expect([shows(plain), shows(asked)], asked.text).toEqual([false, true]);
  },
  async ignored({ format, row, send }) {
    const plain = await ask(format, without(send, row.fields));
    expect(plain.status, plain.text).toBe(200);
    expect((await ask(format, send)).upstream).toBe(plain.upstream);
    if (row.when !== null) return;
    const places = row.fields.filter((place) => !place.endsWith("]"));
    for (const value of places.length === 0 ? [] : awkward) {
      const other = places.reduce<unknown>(
        (body, place) => changeAt(body, place, () => value),
        send,
      );
      if (!isRecord(other)) throw new Error("no body");
      const { status, text, upstream } = await ask(format, other);
      expect([status, upstream], text).toEqual([200, plain.upstream]);
    }
  },
  async refused({ format, row, send }, { param }) {
    const { status, text } = await ask(format, send);
    const body = JSON.parse(text) as { error: { message: string; param?: string } };
    expect(status, text).toBe(400);
    expect(body.error.message.startsWith(`${param}: `), text).toBe(true);
    if (format !== "messages") expect(body.error.param).toBe(param);
    const left = await ask(format, without(send, row.fields));
    expect(left.status, left.text).toBe(200);
  },
};

/** A field that is said to reach the model does so: without it, something else arrives or nothing. */
async function expectToCount(format: WireFormatName, field: string, sent: readonly Body[]) {
  const compared: boolean[] = [];
  for (const send of sent) {
    const [whole, left] = [await ask(format, send), await ask(format, without(send, [field]))];
    compared.push(whole.upstream !== left.upstream);
  }
  expect(compared, field).toContain(true);
}

describe.each(formats)("$name", ({ name: format }) => {
  it.each(Object.entries(formatLosses[format]))(
    "%s is as docs/losses.md says",
    async (topic, row) => {
      const examples = examplesOf(format, seal)[topic] ?? [];
      // Each body is sent once and alone, so that what the deployment got is what this body became.
      for (const example of examples) {
        const check = checks[row.fate] as Check<Fate>;
        await check({ format, row, send: example.send }, example);
      }
      for (const field of row.fields) {
        const sent = examples.filter(({ send }) => valuesAt(send, placeOf(field)).length > 0);
        expect(sent.length, `no example has ${field}`).toBeGreaterThan(0);
        if (row.fate !== "carried" && row.fate !== "converted") continue;
        await expectToCount(
          format,
          field,
          sent.map(({ send }) => send),
        );
      }
    },
  );

  it("has an example for no row that does not exist", () => {
    expect(Object.keys(examplesOf(format, seal)).toSorted()).toEqual(
      Object.keys(formatLosses[format]).toSorted(),
    );
  });
});
