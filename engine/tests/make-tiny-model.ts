import { writeFileSync } from "node:fs";

/**
 * A model of a few hundred kilobytes in llama.cpp's own file format whose next token depends on the last one alone:
 * attention and feed-forward are zero, an embedding is one axis, and the output matrix holds the chances that the
 * table below gives. So that a test knows what a real llama.cpp will answer:
 *
 * - after the template's `assistant` and line break comes `0`, then `1` ... `9`, then `0` again, without end;
 * - after `z` comes the end of the turn;
 * - after `u` comes the euro sign in its three bytes, then `u` again;
 * - after `x` comes a byte that is no character, then `x` again;
 * - the letters `a` to `m` follow one another by chance, so that seed and temperature show.
 *
 * A test chooses by the last letter of an assistant turn that ends the conversation.
 */
export interface TinyModelOptions {
  readonly contextTokens?: number;
  /** null: a file without a chat template. */
  readonly chatTemplate?: string | null;
  /** Tokens that are said one after another instead of the digits, then the end of the turn; each but once. */
  readonly script?: readonly string[];
  /** Quotation marks and closing brackets are more likely than other letters, so that JSON by chance ends soon. */
  readonly closing?: boolean;
}

const tinyTemplate =
  "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}" +
  "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/** Writes the model to a file. */
export function writeTinyModel(path: string, options: TinyModelOptions = {}): void {
  writeFileSync(path, makeTinyModel(options));
}

/** The bytes of the model. */
export function makeTinyModel(options: TinyModelOptions = {}): Buffer {
  const { contextTokens = 2_048, chatTemplate = tinyTemplate, script = [], closing } = options;
  const vocabulary = buildVocabulary(script);
  const width = 288;
  const metadata: readonly (readonly [string, GgufValue])[] = [
    ["general.architecture", text("llama")],
    ["general.name", text("tiny")],
    ["general.file_type", u32(1)],
    ["llama.context_length", u32(contextTokens)],
    ["llama.embedding_length", u32(width)],
    ["llama.block_count", u32(1)],
    ["llama.feed_forward_length", u32(32)],
    ["llama.attention.head_count", u32(1)],
    ["llama.attention.head_count_kv", u32(1)],
    ["llama.attention.key_length", u32(32)],
    ["llama.attention.value_length", u32(32)],
    ["llama.attention.layer_norm_rms_epsilon", f32(1e-6)],
    ["llama.rope.dimension_count", u32(32)],
    ["llama.vocab_size", u32(vocabulary.tokens.length)],
    ["tokenizer.ggml.model", text("gpt2")],
    ["tokenizer.ggml.pre", text("default")],
    ["tokenizer.ggml.tokens", texts(vocabulary.tokens)],
    ["tokenizer.ggml.token_type", i32s(vocabulary.types)],
    ["tokenizer.ggml.merges", texts(["h e"])],
    ["tokenizer.ggml.bos_token_id", u32(vocabulary.startId)],
    ["tokenizer.ggml.eos_token_id", u32(vocabulary.endId)],
    ["tokenizer.ggml.add_bos_token", flag(false)],
    ...(chatTemplate === null ? [] : ([["tokenizer.chat_template", text(chatTemplate)]] as const)),
  ];
  const size = vocabulary.tokens.length;
  const tensors: readonly Tensor[] = [
    half("token_embd.weight", width, size, (column, row) => (column === row ? 1 : 0)),
    half("output.weight", width, size, buildOutput(vocabulary, width, closing === true)),
    single("output_norm.weight", width, 1, () => 1),
    single("blk.0.attn_norm.weight", width, 1, () => 1),
    single("blk.0.ffn_norm.weight", width, 1, () => 1),
    half("blk.0.attn_q.weight", width, 32, () => 0),
    half("blk.0.attn_k.weight", width, 32, () => 0),
    half("blk.0.attn_v.weight", width, 32, () => 0),
    half("blk.0.attn_output.weight", 32, width, () => 0),
    half("blk.0.ffn_gate.weight", width, 32, () => 0),
    half("blk.0.ffn_up.weight", width, 32, () => 0),
    half("blk.0.ffn_down.weight", 32, width, () => 0),
  ];
  return encodeGguf(metadata, tensors);
}

interface Vocabulary {
  readonly tokens: readonly string[];
  readonly types: readonly number[];
  readonly startId: number;
  readonly endId: number;
  readonly scriptIds: readonly number[];
  /** Number of the token of one byte. */
  readonly byte: (value: number) => number;
}

const normalType = 1;
const controlType = 3;

function buildVocabulary(script: readonly string[]): Vocabulary {
  const spellings = spellBytes();
  const said = script.map((text) =>
    Array.from(Buffer.from(text), (byte) => spellings[byte] ?? "").join(""),
  );
  const control = ["<|im_start|>", "<|im_end|>"];
  const tokens = [...spellings, "he", ...control, ...said];
  const types = tokens.map((token) => (control.includes(token) ? controlType : normalType));
  return {
    tokens,
    types,
    startId: tokens.indexOf("<|im_start|>"),
    endId: tokens.indexOf("<|im_end|>"),
    scriptIds: said.map((_, index) => tokens.length - said.length + index),
    byte: (value) => value,
  };
}

/** The letters under which tokenizers of this kind write bytes: printable ones as they are, others from 256 on. */
function spellBytes(): string[] {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const printable =
      (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    if (printable) return String.fromCodePoint(byte);
    next += 1;
    return String.fromCodePoint(next - 1);
  });
}

/** Chance of row's token after column's, as the model's output; embeddings reach it scaled by the root of the width. */
function buildOutput(
  { byte, endId, scriptIds }: Vocabulary,
  width: number,
  closing: boolean,
): (column: number, row: number) => number {
  const certain = 40 / Math.sqrt(width);
  const likely = 4 / Math.sqrt(width);
  const code = (letter: string): number => byte(letter.charCodeAt(0));
  const follower = new Map<number, number>([
    [code("\n"), code("0")],
    [code("z"), endId],
    [code("u"), byte(0xe2)],
    [byte(0xe2), byte(0x82)],
    [byte(0x82), byte(0xac)],
    [byte(0xac), code("u")],
    [code("x"), byte(0xff)],
    [byte(0xff), code("x")],
  ]);
  for (let digit = 0; digit < 10; digit += 1) {
    follower.set(code(String(digit)), code(String((digit + 1) % 10)));
  }
  for (const [index, id] of [code("\n"), ...scriptIds].entries()) {
    if (scriptIds.length > 0) follower.set(id, scriptIds[index] ?? endId);
  }
  const closers = new Set(closing ? Array.from('"}]', code) : []);
  const random = openRandom(7);
  const chances = new Map<string, number>();
  for (const from of "abcdefghijklm") {
    for (const to of "abcdefghijklm") {
      chances.set(`${code(from)} ${code(to)}`, (6 + random() * 2) / Math.sqrt(width));
    }
  }
  return (column, row) =>
    follower.get(column) === row
      ? certain
      : (chances.get(`${column} ${row}`) ?? (closers.has(row) ? likely : 0));
}

function openRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

interface GgufValue {
  readonly type: number;
  readonly bytes: Buffer;
}

interface Tensor {
  readonly name: string;
  readonly columns: number;
  readonly rows: number;
  readonly type: number;
  readonly bytes: Buffer;
}

const alignment = 32;

function encodeGguf(
  metadata: readonly (readonly [string, GgufValue])[],
  tensors: readonly Tensor[],
): Buffer {
  const header = [Buffer.from("GGUF"), uint32(3), uint64(tensors.length), uint64(metadata.length)];
  for (const [key, { bytes, type }] of metadata) header.push(string(key), uint32(type), bytes);
  let offset = 0;
  const data: Buffer[] = [];
  for (const { bytes, columns, name, rows, type } of tensors) {
    const dimensions = rows === 1 ? [columns] : [columns, rows];
    header.push(string(name), uint32(dimensions.length), ...dimensions.map(uint64));
    header.push(uint32(type), uint64(offset));
    const padded = pad(bytes);
    data.push(padded);
    offset += padded.length;
  }
  return Buffer.concat([pad(Buffer.concat(header)), ...data]);
}

function pad(bytes: Buffer): Buffer {
  const rest = bytes.length % alignment;
  return rest === 0 ? bytes : Buffer.concat([bytes, Buffer.alloc(alignment - rest)]);
}

function half(
  name: string,
  columns: number,
  rows: number,
  value: (column: number, row: number) => number,
): Tensor {
  const bytes = Buffer.alloc(columns * rows * 2);
  for (let row = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      bytes.writeUInt16LE(toHalf(value(column, row)), (row * columns + column) * 2);
    }
  }
  return { name, columns, rows, type: 1, bytes };
}

function single(name: string, columns: number, rows: number, value: () => number): Tensor {
  const bytes = Buffer.alloc(columns * rows * 4);
  for (let at = 0; at < columns * rows; at += 1) bytes.writeFloatLE(value(), at * 4);
  return { name, columns, rows, type: 0, bytes };
}

/** Half precision of a number that is 0 or between 0.0001 and 60,000. */
function toHalf(value: number): number {
  if (value === 0) return 0;
  const exponent = Math.floor(Math.log2(value));
  const fraction = Math.round((value / 2 ** exponent - 1) * 1_024);
  return ((exponent + 15) << 10) + fraction;
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}

function string(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([uint64(bytes.length), bytes]);
}

function text(value: string): GgufValue {
  return { type: 8, bytes: string(value) };
}

function u32(value: number): GgufValue {
  return { type: 4, bytes: uint32(value) };
}

function f32(value: number): GgufValue {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return { type: 6, bytes };
}

function flag(value: boolean): GgufValue {
  return { type: 7, bytes: Buffer.from([value ? 1 : 0]) };
}

function texts(values: readonly string[]): GgufValue {
  return {
    type: 9,
    bytes: Buffer.concat([uint32(8), uint64(values.length), ...values.map(string)]),
  };
}

function i32s(values: readonly number[]): GgufValue {
  return {
    type: 9,
    bytes: Buffer.concat([uint32(5), uint64(values.length), ...values.map(uint32)]),
  };
}
