import { type Gateway, openGateway, type WholeParts } from "../gateway.ts";
import { followEngine, type EngineNote } from "../deployment/embedded/engine-relay.ts";
import type { FromWriter } from "../ledger/sqlite/channel-line.ts";
import { openLog } from "../telemetry/log.ts";
import type { ServiceTelemetry } from "../telemetry/telemetry.ts";
import type { ServingCalls, ServingOrder, ServingStart, StarterCalls } from "../processes/calls.ts";
import { quietTimers } from "../timers.ts";
import { openProcessTelemetry, type ProcessTelemetry } from "./process-telemetry.ts";
import { tuneHeap } from "./heap-spaces.ts";
import { type ChannelMessage, openChannel } from "../processes/channel.ts";

// One of several processes that serve, started by another one: it listens and serves as a whole service does, without a
// terminal, a file of the ledger and an engine of its own.

// Node would open its inspector, which runs any code for any user of this machine.
process.on("SIGUSR1", () => {});
// A terminal and a service manager send these to every process of a service; the one that started this one says what to do.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => {});
let ending = false;
// Without that one there is no ledger, no log and no port: what runs ends as in a crash.
process.on("disconnect", () => void (ending || process.exit(1)));

const starter = openChannel<StarterCalls>(openCalls(), send);
process.on("message", (message) => starter.receive(message as ChannelMessage));

function send(message: ChannelMessage): void {
  // A channel that breaks ends this process by "disconnect".
  process.send?.(message, undefined, {}, () => undefined);
}

function openCalls(): ServingCalls {
  const begun = Promise.withResolvers<{
    readonly gateway: Gateway;
    readonly telemetry: ServiceTelemetry;
  }>();
  const opened = new AsyncDisposableStack();
  let arrived = true;
  const fromWriter = openRelay<FromWriter>();
  const fromEngine = openRelay<EngineNote>();

  return {
    async start(order): Promise<ServingStart> {
      const telemetry = opened.use(await openServingTelemetry(order));
      opened.defer(async () => void (arrived = await telemetry.flush()));
      const whole = wholeParts(order, fromWriter.listen, fromEngine.listen);
      for (const note of order.engine?.notes ?? []) fromEngine.tell(note);
      const gateway = opened.use(
        await openGateway(order.config, { telemetry, onProgress: () => undefined, whole }),
      );
      tuneHeap(quietTimers);
      begun.resolve({ gateway, telemetry });
      return {
        address: gateway.address,
        first: gateway.first,
        description: gateway.describe(),
      };
    },
    describe: async () => (await begun.promise).gateway.describe(),
    metrics: async () => (await begun.promise).telemetry.metricsSnapshot(),
    running: async () => (await begun.promise).gateway.running(),
    figures: async () => (await begun.promise).gateway.figures(),
    refusals: async () => (await begun.promise).gateway.refusals(),
    reasons: async () => (await begun.promise).gateway.reasons(),
    lookForCancelled: async () => (await begun.promise).gateway.lookForCancelled(),
    leave: async () => (await begun.promise).gateway.leave(),
    drain: async () => (await begun.promise).gateway.drain(),
    async end() {
      await opened.disposeAsync();
      ending = true;
      // After the last lines of the log and the answer to this call.
      setImmediate(() =>
        setImmediate(() => {
          process.disconnect?.();
          // What still waits for a collector must not keep the process.
          if (!arrived) process.exit(0);
        }),
      );
    },
    ledger: fromWriter.tell,
    engine: fromEngine.tell,
  };
}

function openServingTelemetry(order: ServingOrder): Promise<ProcessTelemetry> {
  const { config, log, process: number } = order;
  let text = "";
  const flush = (): void => {
    starter.tell("log", text);
    text = "";
  };
  const destination = {
    write(line: string) {
      // The lines of one turn travel together.
      if (text === "") setImmediate(flush);
      text += line;
    },
    flush() {},
  };
  return openProcessTelemetry(config, {
    log: openLog({ level: config.logLevel, ...log, destination, process: number }),
    process: number,
  });
}

function wholeParts(
  { engine, family }: ServingOrder,
  listenToWriter: (listener: (message: FromWriter) => void) => void,
  listenToEngine: (listener: (note: EngineNote) => void) => void,
): WholeParts {
  const channel = {
    send: (message: Parameters<StarterCalls["ledger"]>[0]) => starter.tell("ledger", message),
    listen: listenToWriter,
  };
  return {
    metricsText: () => starter.ask("metrics", null),
    ...(family === null ? {} : { writer: { channel, family } }),
    ...(engine === null ? {} : { engine: followEngine(engine.apiKey, listenToEngine) }),
  };
}

/** What comes before there is a listener waits for it. */
function openRelay<Message>() {
  const early: Message[] = [];
  let listener: ((message: Message) => void) | null = null;
  return {
    tell: (message: Message): void => {
      if (listener === null) early.push(message);
      else listener(message);
    },
    listen: (heard: (message: Message) => void): void => {
      listener = heard;
      for (const message of early.splice(0)) heard(message);
    },
  };
}
