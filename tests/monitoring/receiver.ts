import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { installForPython } from "../agents/install.ts";

/** A value of an attribute, as JSON has it. */
export type AttributeValue = string | number | boolean | readonly AttributeValue[] | object | null;

/** A span, a record of the log or a point of a metric, with its attributes as an object. */
export interface Received {
  readonly [name: string]: unknown;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
}

/** What has arrived. */
export interface OtlpReceiver extends AsyncDisposable {
  readonly url: string;
  /** Every message, as it was written in the receiver's own JSON. */
  readonly text: () => string;
  readonly headers: () => readonly (string | null)[];
  spans(): readonly Received[];
  records(): readonly Received[];
  /** The points of a metric that came last. */
  points(metric: string): readonly Received[];
  /** Of what sent it, by signal. */
  resources(): readonly Readonly<Record<string, AttributeValue>>[];
}

interface Message {
  readonly path: string;
  readonly type: string;
  readonly tried: string | null;
  readonly message: Readonly<Record<string, readonly Group[] | undefined>>;
}

interface Group {
  readonly resource?: { readonly attributes?: readonly Pair[] };
  readonly scopeSpans?: readonly { readonly spans?: readonly Raw[] }[];
  readonly scopeLogs?: readonly { readonly logRecords?: readonly Raw[] }[];
  readonly scopeMetrics?: readonly { readonly metrics?: readonly RawMetric[] }[];
}

interface Pair {
  readonly key: string;
  readonly value: RawValue;
}

type RawValue = Readonly<Record<string, unknown>>;
type Raw = Readonly<Record<string, unknown>> & { readonly attributes?: readonly Pair[] };
type RawMetric = Readonly<Record<string, unknown>> & { readonly name: string };

/** Starts it: a program in Python on the standard's published classes, which decodes what arrives. */
export async function startReceiver(): Promise<OtlpReceiver> {
  const folder = await installForPython({ "opentelemetry-proto": "1.44.0" });
  const program = join(import.meta.dirname, "receive_otlp.py");
  const child = spawn(join(folder, "bin/python"), [program], {
    stdio: ["pipe", "pipe", "inherit"],
    timeout: 110_000,
  });
  const ended = once(child, "exit");
  const messages: Message[] = [];
  const begun = Promise.withResolvers<number>();
  void ended.then(() => begun.reject(new Error("the receiver has ended")));
  createInterface({ input: child.stdout }).on("line", (line) => {
    const read = JSON.parse(line) as Message | { readonly port: number };
    if ("port" in read) begun.resolve(read.port);
    else messages.push(read);
  });
  const port = await begun.promise;
  const groups = (): readonly Group[] =>
    messages.flatMap(({ message }) => Object.values(message).flatMap((found) => found ?? []));
  return {
    url: `http://127.0.0.1:${String(port)}`,
    text: () => JSON.stringify(messages),
    headers: () => messages.map(({ tried }) => tried),
    spans: () =>
      groups().flatMap(({ scopeSpans = [] }) =>
        scopeSpans.flatMap(({ spans = [] }) => spans.map(received)),
      ),
    records: () =>
      groups().flatMap(({ scopeLogs = [] }) =>
        scopeLogs.flatMap(({ logRecords = [] }) => logRecords.map(received)),
      ),
    points(metric) {
      const found = groups()
        .flatMap(({ scopeMetrics = [] }) => scopeMetrics.flatMap(({ metrics = [] }) => metrics))
        .findLast(({ name }) => name === metric);
      const data = (found?.["histogram"] ?? found?.["sum"] ?? found?.["gauge"]) as
        | { readonly dataPoints?: readonly Raw[] }
        | undefined;
      return (data?.dataPoints ?? []).map(received);
    },
    resources: () => groups().map(({ resource }) => attributesOf(resource?.attributes)),
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await ended;
    },
  };
}

function received(raw: Raw): Received {
  return { ...raw, attributes: attributesOf(raw.attributes) };
}

function attributesOf(pairs: readonly Pair[] = []): Readonly<Record<string, AttributeValue>> {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, valueOf(value)]));
}

/** Whole numbers travel as text in this JSON. */
function valueOf(value: RawValue): AttributeValue {
  if ("intValue" in value) return Number(value["intValue"]);
  if ("arrayValue" in value)
    return ((value["arrayValue"] as { readonly values?: readonly RawValue[] }).values ?? []).map(
      valueOf,
    );
  if ("kvlistValue" in value)
    return attributesOf((value["kvlistValue"] as { readonly values?: readonly Pair[] }).values);
  const [only = null] = Object.values(value);
  return typeof only === "string" || typeof only === "boolean" ? only : Number(only);
}
