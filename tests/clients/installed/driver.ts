import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";
import { afterAll, beforeAll } from "vitest";
import { isRecord } from "../../cases/files.ts";
import { without } from "../accumulators.ts";
import type {
  ClientKind,
  ConnectedClient,
  Connection,
  Question,
  SeenAnswer,
  SeenError,
} from "../client.ts";

/** What a driver is asked to do with its client. */
export interface Order extends Connection {
  /** Which of the driver's clients, where it has more than one. */
  readonly client: string;
  readonly do: string;
  readonly prompt?: string;
  readonly prompts?: readonly string[];
  readonly tools?: boolean;
  /** Of a loop. */
  readonly way?: string;
}

/** A program in the client's own language that does with the client what the script says, and prints what it saw. */
export interface Driver {
  ask(order: Order, question?: Pick<Question, "signal" | "onText">): Promise<unknown>;
}

/** An error that the client gave its application, in the driver's words. */
class ClientError extends Error {
  readonly seen: SeenError;

  constructor(seen: SeenError) {
    super(seen.message);
    this.seen = seen;
  }
}

interface Asked {
  readonly onText: ((text: string) => void) | undefined;
  readonly told: PromiseWithResolvers<unknown>;
}

/** Runs a driver for all tests of a file. */
export function useDriver(command: readonly string[]): Driver {
  const asked = new Map<number, Asked>();
  let child: ChildProcess | null = null;
  let count = 0;
  let words = "";

  function hear(line: string, ready: () => void): void {
    const message: unknown = JSON.parse(line);
    if (!isRecord(message)) throw new Error(`a driver said ${line}`);
    if (message["ready"] === true) return ready();
    const id = Number(message["id"]);
    const order = asked.get(id);
    if (typeof message["text"] === "string") return order?.onText?.(message["text"]);
    asked.delete(id);
    if (isRecord(message["error"])) {
      return order?.told.reject(new ClientError(message["error"] as unknown as SeenError));
    }
    return order?.told.resolve(message["answer"]);
  }

  beforeAll(async () => {
    const [program = "", ...rest] = command;
    const { PATH } = process.env;
    const env = { PATH, HOME: tmpdir(), LANG: "C.UTF-8", NO_COLOR: "1" };
    const started = spawn(program, rest, { env, stdio: ["pipe", "pipe", "pipe"] });
    child = started;
    started.stderr.on(
      "data",
      (bytes: Buffer) => (words = (words + bytes.toString()).slice(-4_000)),
    );
    const ready = Promise.withResolvers<void>();
    createInterface({ input: started.stdout }).on("line", (line) => hear(line, ready.resolve));
    const ended = once(started, "close").then(() => {
      const failure = new Error(`the driver ended: ${words}`);
      for (const { told } of asked.values()) told.reject(failure);
      throw failure;
    });
    await Promise.race([ready.promise, ended]);
    ended.catch(() => undefined);
  });

  afterAll(async () => {
    if (child === null || child.exitCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "close");
  });

  return {
    ask(order, { onText, signal } = {}) {
      const stdin = child?.stdin;
      if (stdin === null || stdin === undefined) throw new Error("the driver has not started");
      const id = (count += 1);
      const told = Promise.withResolvers<unknown>();
      asked.set(id, { onText, told });
      stdin.write(`${JSON.stringify({ id, ...order })}\n`);
      signal?.addEventListener("abort", () => {
        if (asked.has(id)) stdin.write(`${JSON.stringify({ id, leave: true })}\n`);
      });
      return told.promise;
    },
  };
}

/** What a client that a driver speaks to is particular about. */
export interface DrivenKind extends Omit<ClientKind, "connect" | "describeError"> {
  readonly driver: Driver;
  readonly client: string;
  /** Members of its own objects that are others every time or only in a stream. */
  readonly changing: readonly string[];
}

/** A client that a driver speaks to, as the laws do. */
export function drivenClient(kind: DrivenKind): ClientKind {
  return {
    ...kind,
    describeError(error) {
      if (error instanceof ClientError) return error.seen;
      throw error;
    },
    connect: (connection) => connect(kind, connection),
  };
}

function connect(kind: DrivenKind, connection: Connection): ConnectedClient {
  const { client, driver } = kind;
  const ask = (order: Omit<Order, keyof Connection | "client">, question?: Question) =>
    driver.ask({ ...connection, client, ...order }, question);
  const answer = async (way: string, question: Question): Promise<SeenAnswer> => {
    const { prompt, tools } = question;
    const seen = (await ask(
      { do: way, prompt, ...(tools === undefined ? {} : { tools }) },
      question,
    )) as SeenAnswer;
    return { ...seen, vendor: without(seen.vendor, kind.changing) };
  };
  const loops = Object.keys(kind.loopsReturnReasoning).map((way) => [
    way,
    (prompt: string) => ask({ do: "loop", way, prompt }),
  ]);
  return {
    whole: (question) => answer("whole", question),
    streamed: (question) => answer("streamed", question),
    askForTheImpossible: () => ask({ do: "impossible" }),
    loops: Object.fromEntries(loops) as ConnectedClient["loops"],
    converse: async (prompts) => (await ask({ do: "converse", prompts })) as readonly string[],
    listModels: async () => (await ask({ do: "models" })) as readonly string[],
    countTokens: async (prompt) => Number(await ask({ do: "count", prompt })),
  };
}
