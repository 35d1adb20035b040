import { createHash } from "node:crypto";
import type { Environment } from "./command-line.ts";
import type { DownloadOrder } from "./download.ts";

/** A model that is fetched from an address. */
export interface ModelAddress {
  /** What may be shown: without name, password and query. */
  readonly name: string;
  /** As node-llama-cpp takes it. */
  readonly uri: string;
  readonly authorization: string | null;
  /** Where it is `hf:`, the parts of it that its server is asked by. */
  readonly huggingFace: HuggingFaceFile | null;
  /** The hash that was given with `#sha256=`. */
  readonly sha256: string | null;
  /** Name of the folder that its files have for themselves. */
  readonly folder: string;
}

/** One file of a repository there. */
export interface HuggingFaceFile {
  readonly owner: string;
  readonly repository: string;
  readonly branch: string;
  readonly path: string;
}

/** An address, what is wrong with it, or null for something that is no address at all. */
export type ParsedAddress =
  | { readonly ok: true; readonly address: ModelAddress }
  | { readonly ok: false; readonly problem: string };

/** Reads `hf:OWNER/REPOSITORY/FILE` and `https://...`, either with `#sha256=...` at its end. */
export function parseModelAddress(value: string): ParsedAddress | null {
  if (!/^(?:hf|huggingface|https?):/i.test(value)) return null;
  const [, bare = "", sha256 = null] = /^(.*?)(?:#sha256=([0-9a-f]{64}))?$/i.exec(value) ?? [];
  const pin = sha256?.toLowerCase() ?? null;
  if (bare.includes("#sha256="))
    return refuse("what follows #sha256= is no hash of 64 hexadecimal digits");
  return /^https?:/i.test(bare) ? parseUrl(bare, pin) : parseHuggingFace(bare, pin);
}

/** Where `hf:` addresses lead. */
export const hubDefault = "https://huggingface.co";

/** How an address is asked and fetched: HF_ENDPOINT names a mirror of the hub, HF_TOKEN is for the hub alone. */
export function hubProbe(
  { authorization, huggingFace, uri }: ModelAddress,
  environment: Environment,
): Pick<DownloadOrder, "uri" | "probe" | "token" | "endpoint"> {
  const token = environment["HF_TOKEN"] ?? null;
  const endpoint = environment["HF_ENDPOINT"] ?? hubDefault;
  const headers = authorization === null ? {} : { authorization };
  if (huggingFace === null)
    return { uri, probe: { url: uri, headers, isHub: false }, token: null, endpoint: hubDefault };
  const { branch, owner, path, repository } = huggingFace;
  const parts = [owner, repository, "resolve", branch, ...path.split("/")];
  const base = endpoint.replace(/\/+$/u, "");
  const probe = {
    url: `${base}/${parts.map((part) => encodeURIComponent(part)).join("/")}`,
    headers: token === null ? headers : { authorization: `Bearer ${token}` },
    isHub: true,
  };
  return { uri, probe, token, endpoint };
}

function parseHuggingFace(bare: string, sha256: string | null): ParsedAddress {
  const rest = bare.replace(/^[a-z]+:(?:\/\/)?/i, "");
  const found = /^([\w.-]+)\/([\w.-]+)\/([^#?\s]+\.gguf)(?:#([^#\s]+))?$/i.exec(rest);
  const [, owner, repository, path, branch = "main"] = found ?? [];
  if (owner === undefined || repository === undefined || path === undefined)
    return refuse("write it as hf:OWNER/REPOSITORY/FILE.gguf");
  const name = `hf:${owner}/${repository}/${path}${branch === "main" ? "" : `#${branch}`}`;
  const huggingFace = { owner, repository, branch, path };
  return accept({ name, uri: name, authorization: null, huggingFace, sha256 });
}

function parseUrl(bare: string, sha256: string | null): ParsedAddress {
  const url = URL.parse(bare);
  if (url === null) return refuse("this is no address");
  if (!/\.gguf$/i.test(url.pathname)) return refuse("the path of the address must end with .gguf");
  const { password, username } = url;
  const pair = `${decode(username)}:${decode(password)}`;
  const authorization = pair === ":" ? null : `Basic ${Buffer.from(pair).toString("base64")}`;
  url.username = "";
  url.password = "";
  url.hash = "";
  const name = `${url.origin}${url.pathname}`;
  return accept({ name, uri: url.href, authorization, huggingFace: null, sha256 });
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function accept(address: Omit<ModelAddress, "folder">): ParsedAddress {
  // Two addresses may end with the same file name, and the cache is shared.
  const folder = createHash("sha256").update(address.uri).digest("hex").slice(0, 16);
  return { ok: true, address: { ...address, folder } };
}

function refuse(problem: string): ParsedAddress {
  return { ok: false, problem };
}
