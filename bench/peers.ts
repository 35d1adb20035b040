import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Arm } from "./arms.ts";
import { answersWell, freePort, gatewayCore, startProgram, stop } from "./children.ts";
import { ensureInstalled, type PeerPackage } from "./peer-packages.ts";
import { processTree } from "./process-usage.ts";
import { type BenchFormat, chat, formats } from "./wire.ts";

// Other gateways, each at its best for what is measured: one worker, no database, nothing logged for each request.

interface PeerStart {
  readonly program: string;
  readonly values: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

interface Peer {
  readonly name: string;
  readonly package: PeerPackage;
  readonly does: string;
  readonly formats: readonly BenchFormat[];
  readonly key?: string;
  readonly models?: NonNullable<Arm["models"]>;
  headers?(origin: string): Readonly<Record<string, string>>;
  /** How it is started so that it listens at `port` and asks `origin`; `installed` has its package. */
  start(where: {
    readonly installed: string;
    readonly folder: string;
    readonly origin: string;
    readonly port: number;
  }): Promise<PeerStart>;
}

const localhost = "127.0.0.1";
const masterKey = "sk-bench";
const bridgedModel = "service-llm-bridged";
/** Python's gateways import for long on a busy machine. */
const startSeconds = 120;

/** The two routers are started alike. */
function router(name: string, spec: string, values: readonly string[]): Peer {
  return {
    name,
    package: { kind: "pip", spec },
    does: "passes on, retries, counts; no key, credit or ledger",
    formats: [chat],
    start: async ({ installed, origin, port }) => {
      // Both would take the same one.
      const metricsPort = String(await freePort());
      return {
        program: join(installed, "bin/python"),
        // prettier-ignore
        values: [...values, "--prometheus-port", metricsPort, "--worker-urls", origin, "--host", localhost, "--port", String(port), "--policy", "round_robin", "--log-level", "error"],
      };
    },
  };
}

/** Every peer that the benchmark knows, with the version that was measured. */
export const peers: readonly Peer[] = [
  router("vllm-router", "vllm-router==0.1.17", ["-m", "vllm_router.launch_router"]),
  router("sglang-router", "sglang-router==0.3.2", ["-m", "sglang_router.launch_router"]),
  {
    name: "portkey",
    package: {
      kind: "npm",
      spec: "@portkey-ai/gateway@1.15.2",
      overrides: { "@hono/node-server": "1.13.8" },
    },
    does: "passes on, parses and writes each chunk anew; no key of its own, credit or ledger",
    formats: [chat],
    headers: (origin) => ({
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": `${origin}/v1`,
      authorization: "Bearer none",
    }),
    start: ({ installed, port }) =>
      Promise.resolve({
        program: process.execPath,
        values: [
          join(installed, "node_modules/@portkey-ai/gateway/build/start-server.js"),
          `--port=${String(port)}`,
          "--headless",
        ],
        environment: { NODE_ENV: "production" },
      }),
  },
  {
    name: "litellm",
    package: { kind: "pip", spec: "litellm[proxy]==1.106.2" },
    does: "one key from a file; without its database no other, no credit and no ledger",
    formats,
    key: masterKey,
    models: { messages: bridgedModel, responses: bridgedModel },
    start: async ({ folder, installed, origin, port }) => {
      const config = join(folder, "litellm.json");
      await writeFile(config, JSON.stringify(liteLlmConfig(origin)));
      return {
        program: join(installed, "bin/litellm"),
        // prettier-ignore
        values: ["--config", config, "--host", localhost, "--port", String(port), "--num_workers", "1"],
        // It would read prices from the network at its start.
        environment: { LITELLM_LOCAL_MODEL_COST_MAP: "True", LITELLM_LOG: "ERROR" },
      };
    },
  },
];

/** YAML reads JSON too. Messages and Responses need the provider that speaks Chat Completions to the deployment. */
function liteLlmConfig(origin: string): unknown {
  const parameters = { api_base: `${origin}/v1`, api_key: "none" };
  const bridged = { model: "hosted_vllm/mock", use_chat_completions_api: true, ...parameters };
  return {
    model_list: [
      { model_name: "service-llm", litellm_params: { model: "openai/mock", ...parameters } },
      { model_name: bridgedModel, litellm_params: bridged },
    ],
    litellm_settings: { telemetry: false, drop_params: true },
    general_settings: { master_key: masterKey },
  };
}

/** Installs a peer where that has not been done, starts it and waits until it serves. */
export async function openPeer(peer: Peer, origin: string, folder: string): Promise<Arm> {
  const installed = await ensureInstalled(peer.name, peer.package);
  const port = await freePort();
  const url = `http://${localhost}:${String(port)}${chat.path}`;
  const {
    environment = {},
    program,
    values,
  } = await peer.start({
    installed,
    folder,
    origin,
    port,
  });
  const log = join(folder, `${peer.name}.log`);
  const child = startProgram(program, values, { core: gatewayCore, folder, log, environment });
  const key = peer.key ?? "";
  const headers = peer.headers?.(origin) ?? {};
  const asked: RequestInit = {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(key === "" ? {} : { authorization: `Bearer ${key}` }),
      ...headers,
    },
    body: JSON.stringify(chat.body({ chunks: 1, intervalMs: 0 })),
  };
  try {
    await answersWell(() => fetch(url, asked), { child, seconds: startSeconds });
  } catch (error) {
    await stop(child);
    const said = (await readFile(log, "utf8")).trim().split("\n").at(-1) ?? "";
    throw new Error(`${String(error)}; it said last: ${said}`, { cause: error });
  }
  return {
    name: peer.name,
    url,
    key,
    headers,
    formats: peer.formats,
    does: peer.does,
    models: peer.models ?? {},
    isPeer: true,
    processIds: () => processTree(child.pid ?? 0),
    [Symbol.asyncDispose]: () => stop(child),
  };
}
