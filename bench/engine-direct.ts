/** A process that drives the model through the library alone, for comparison: no queue, no service, no accounts. */
import { constants, setPriority } from "node:os";
import { getLlama, JinjaTemplateChatWrapper, LlamaLogLevel } from "node-llama-cpp";

/** What this process is told; the first message is `load`. */
export type DirectOrder =
  | { readonly type: "load"; readonly modelFile: string; readonly threads: number }
  | { readonly type: "ask"; readonly user: string; readonly outputTokensMax: number };

/** What it tells; one for each order. */
export type DirectReport =
  | { readonly type: "loaded" }
  | {
      readonly type: "answered";
      readonly inputTokens: number;
      readonly outputTokens: number;
      readonly ms: number;
    };

// As the service's own model process, so that a busy machine treats both alike.
setPriority(constants.priority.PRIORITY_BELOW_NORMAL);

async function openModel(modelFile: string, threads: number) {
  const llama = await getLlama({
    gpu: false,
    build: "never",
    skipDownload: true,
    progressLogs: false,
    maxThreads: threads,
    logLevel: LlamaLogLevel.error,
  });
  const model = await llama.loadModel({ modelPath: modelFile });
  const context = await model.createContext({ contextSize: 8_192, sequences: 1 });
  const template = model.fileInfo.metadata.tokenizer.chat_template;
  if (template === undefined) throw new Error("the model has no chat template");
  const wrapper = new JinjaTemplateChatWrapper({ template, tokenizer: model.tokenizer });
  return { model, sequence: context.getSequence(), wrapper };
}

type Loaded = Awaited<ReturnType<typeof openModel>>;

async function answer(
  { model, sequence, wrapper }: Loaded,
  { outputTokensMax, user }: Extract<DirectOrder, { type: "ask" }>,
): Promise<DirectReport> {
  await sequence.clearHistory();
  const startMs = performance.now();
  const { contextText } = wrapper.generateContextState({
    chatHistory: [
      { type: "user", text: user },
      { type: "model", response: [] },
    ],
  });
  const prompt = contextText.tokenize(model.tokenizer);
  let text = "";
  let outputTokens = 0;
  for await (const token of sequence.evaluate(prompt, { temperature: 0, yieldEogToken: true })) {
    outputTokens += 1;
    if (model.isEogToken(token) || outputTokens === outputTokensMax) break;
    text += model.detokenize([token]);
  }
  if (text === "") throw new Error("the model driven directly wrote nothing");
  return {
    type: "answered",
    inputTokens: prompt.length,
    outputTokens,
    ms: performance.now() - startMs,
  };
}

let loaded: Loaded | null = null;

async function obey(order: DirectOrder): Promise<void> {
  if (order.type === "load") {
    loaded = await openModel(order.modelFile, order.threads);
    process.send?.({ type: "loaded" } satisfies DirectReport);
  } else if (loaded !== null) process.send?.(await answer(loaded, order));
}

process.on("message", (message) => void obey(message as DirectOrder));
process.on("disconnect", () => process.exit());
