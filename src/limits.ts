/** Every number of the specification, and every bound that keeps one request from hurting another. */
export const limits = {
  /** [specification] JSON request body. */
  bodyBytesMax: 4 * 1024 * 1024,
  /** Levels of JSON nesting; the body itself is level 1. Deeper input only exhausts stacks. */
  bodyNestingMax: 64,
  /** Bodies above this are parsed and prepared off the event loop: parsing costs about 10 ms a MiB. */
  bodyInlineBytesMax: 64 * 1024,
  /** [specification] Messages, or input items. */
  inputItemsMax: 2_000,
  /** [specification] Tool definitions after flattening. */
  toolsMax: 128,
  /** [specification] UTF-8 bytes of the tools' JSON, all sources together. */
  toolBytesMax: 1024 * 1024,
  /** Characters of a tool's or a namespace's name; agents' names for MCP tools exceed 64. */
  toolNameCharactersMax: 128,
  /** [specification] Conservative bound on the input, in tokens. */
  inputBoundMax: 2_000_000,
  /** Parts of that bound: every item, every tool, every request. */
  inputBoundPerItem: 16,
  inputBoundPerTool: 16,
  inputBoundPerRequest: 64,
  /** [specification] Output tokens when the client names none. */
  outputAllowanceDefault: 32_768,
  /** [specification] Larger explicit allowances are capped to this. */
  outputAllowanceMax: 65_536,
  /** Bytes of input that count as one token in the quick estimate; no tokenizer on the way to an answer. */
  bytesPerTokenEstimate: 4,
  /** Characters of output that count as one token where an engine neither reports usage nor sends token by token. */
  charactersPerTokenCount: 4,
  /** [specification] Open reservations of one account. */
  concurrencyPerAccount: 4,
  /** [specification] Requests of one key in any 60 seconds. */
  requestsPerMinute: 600,
  rateWindowMs: 60_000,
  /** SDKs ignore longer advice and retry sooner. */
  retryAfterSecondsMax: 60,
  /** A header block or a body that takes longer is a slow caller. */
  requestReceiveMs: 60_000,
  headerBytesMax: 32 * 1024,
  /** Status and opening frames go out after this long even when the deployment is silent. */
  headersAfterMs: 2_000,
  /** How long a terminal frame waits for its settlement to be committed. */
  settlementWaitMs: 250,
  /** Unsent bytes of one stream after which the deployment is paused. */
  streamBufferedBytesMax: 1024 * 1024,
  /** Characters of an answer held for a body or a last event; a longer answer is failed, not truncated. */
  answerCharactersMax: 256 * 1024 * 1024,
  /** Characters of one frame that the deployment may send. */
  upstreamFrameCharactersMax: 64 * 1024 * 1024,
  /** Characters of a model name in a request or in a lookup. */
  modelNameCharactersMax: 256,
  /** A process that could not renew cancels this long before its leases end. */
  leaseSafetyMs: 10_000,
  /** Generations that wait for weights on disk to load give up after this. */
  modelLoadWaitMs: 5_000,
} as const;

// The relations between the numbers; a change that breaks one stops the start.
if (limits.outputAllowanceDefault > limits.outputAllowanceMax)
  throw new Error("limits: the default output allowance exceeds the cap");
if (limits.bodyInlineBytesMax > limits.bodyBytesMax)
  throw new Error("limits: bodies parsed inline exceed the largest body");
if (limits.inputBoundMax > limits.bodyBytesMax)
  throw new Error("limits: the byte-based bound could never be reached");
