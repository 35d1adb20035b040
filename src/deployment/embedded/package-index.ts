import { execFile } from "node:child_process";
import { access, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { EnvHttpProxyAgent, fetch, type Dispatcher, type Response } from "undici";
import type { WheelSource } from "./catalog.ts";
import { readPipSettings, type PipMachine, type PipSettings } from "./pip-configuration.ts";

/** Where one wheel lies. `file`: on this machine already. */
export type WheelPlace =
  | { readonly type: "file"; readonly path: string }
  | { readonly type: "url"; readonly url: string; readonly authorization: string | null };

/** Asks the package indexes that pip would ask. */
export interface PackageIndex extends AsyncDisposable {
  /** Throws an Error that says what was asked and what it answered. */
  find(wheel: WheelSource, signal: AbortSignal): Promise<WheelPlace>;
  /** A request with this machine's proxies and certificates. */
  readonly get: (
    url: string,
    headers: Record<string, string>,
    signal: AbortSignal,
  ) => Promise<Response>;
}

const connectMs = 10_000;
const silenceMs = 30_000;
const pageCharactersMax = 16 * 1024 * 1024;

/** Reads pip's configuration at every call of `find`, so that a corrected one is seen without a restart. */
export async function openPackageIndex(machine: PipMachine): Promise<PackageIndex> {
  const settings = await readPipSettings(machine);
  const dispatcher = await openDispatcher(settings);
  async function get(url: string, headers: Record<string, string>, signal: AbortSignal) {
    return fetch(url, { headers, signal, dispatcher });
  }
  return {
    get,
    async find(wheel, signal) {
      const here = await findInFolders(wheel, settings.findLinks);
      if (here !== null) return here;
      const tried: string[] = [];
      for (const index of await indexesOf(settings)) {
        const answer = await findInIndex({ wheel, index, get, signal });
        if (typeof answer !== "string") return answer;
        tried.push(answer);
      }
      throw new Error(
        tried.length === 0 ? "pip's configuration allows no index" : tried.join("; "),
      );
    },
    [Symbol.asyncDispose]: () => dispatcher.close(),
  };
}

async function openDispatcher(settings: PipSettings): Promise<Dispatcher> {
  const file = settings.certificateFile;
  const ca = file === null ? undefined : await readFile(file).catch(() => undefined);
  const tls = ca === undefined ? {} : { ca };
  return new EnvHttpProxyAgent({
    connect: { timeout: connectMs, ...tls },
    requestTls: tls,
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
  });
}

async function findInFolders(
  wheel: WheelSource,
  places: readonly string[],
): Promise<WheelPlace | null> {
  for (const place of places) {
    if (/^https?:/i.test(place)) continue;
    const folder = place.startsWith("file:") ? fileURLToPath(place) : place;
    const path = basename(folder) === wheel.file ? folder : join(folder, wheel.file);
    const there = await access(path).then(
      () => true,
      () => false,
    );
    if (there) return { type: "file", path };
  }
  return null;
}

async function indexesOf(settings: PipSettings): Promise<readonly string[]> {
  if (settings.noIndex) return [];
  const first = settings.indexUrl ?? (await askPipForDefault());
  return [first, ...settings.extraIndexUrls];
}

/** pip's own constant, from pip itself or from the copy that Python keeps for new environments. */
const defaultIndexScript = `
try:
    from pip._internal.models.index import PyPI
except ImportError:
    import ensurepip, glob, os, sys
    folder = getattr(ensurepip, "_WHEEL_PKG_DIR", None) or os.path.join(os.path.dirname(ensurepip.__file__), "_bundled")
    sys.path.insert(0, sorted(glob.glob(os.path.join(folder, "pip-*.whl")))[-1])
    from pip._internal.models.index import PyPI
print(PyPI.simple_url)
`;

/** This project names no index of its own: the default one is whatever pip on this machine holds for it. */
async function askPipForDefault(): Promise<string> {
  for (const python of ["python3", "python", "py"]) {
    try {
      const run = promisify(execFile);
      const { stdout } = await run(python, ["-c", defaultIndexScript], {
        timeout: connectMs,
        windowsHide: true,
      });
      const url = stdout.trim();
      if (URL.canParse(url)) return url;
    } catch {
      // Not this one; the next may do, and the error below says what to set.
    }
  }
  throw new Error(
    "no package index is configured and this machine has no pip to ask for the default one; set PIP_INDEX_URL to " +
      "the address of an index's simple pages",
  );
}

interface IndexQuestion {
  readonly wheel: WheelSource;
  readonly index: string;
  readonly get: PackageIndex["get"];
  readonly signal: AbortSignal;
}

/** The place of the wheel, or in words why this index does not have it. */
async function findInIndex(question: IndexQuestion): Promise<WheelPlace | string> {
  const { wheel, index, get, signal } = question;
  if (!URL.canParse(index) || !/^https?:/i.test(index)) {
    return `the package index address ${JSON.stringify(index)} is no http address`;
  }
  const base = new URL(`${index.replace(/\/+$/, "")}/${wheel.project}/`);
  const authorization = takeAuthorization(base);
  const shown = base.origin;
  try {
    const response = await get(base.href, headersFor(authorization), signal);
    if (!response.ok) return `the package index ${shown} answered ${response.status}`;
    const text = await response.text();
    if (text.length > pageCharactersMax) return `the package index ${shown} sent too much`;
    const link = findLink(text, response, wheel.file);
    if (link === null) return `the package index ${shown} does not have ${wheel.file}`;
    if (link.sha256 !== null && link.sha256 !== wheel.sha256) {
      return `the package index ${shown} has another file under the name ${wheel.file}`;
    }
    const sameHost = link.url.host === base.host;
    return {
      type: "url",
      url: link.url.href,
      authorization: sameHost ? authorization : null,
    };
  } catch (error) {
    signal.throwIfAborted();
    return `the package index ${shown} cannot be reached (${reasonOf(error)})`;
  }
}

function headersFor(authorization: string | null): Record<string, string> {
  return {
    accept: "application/vnd.pypi.simple.v1+json, text/html;q=0.1",
    ...(authorization !== null && { authorization }),
  };
}

/** Takes name and password out of an address; `fetch` refuses such addresses, and no log may show them. */
function takeAuthorization(url: URL): string | null {
  const { username, password } = url;
  if (username === "" && password === "") return null;
  url.username = "";
  url.password = "";
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return `Basic ${Buffer.from(pair).toString("base64")}`;
}

interface Link {
  readonly url: URL;
  readonly sha256: string | null;
}

/** Both forms of the simple pages: JSON, and HTML with the hash in the link's fragment. */
function findLink(text: string, response: Response, file: string): Link | null {
  const type = response.headers.get("content-type") ?? "";
  const links = type.includes("json") ? linksOfJson(text) : linksOfHtml(text);
  for (const { href, sha256 } of links) {
    const url = URL.parse(href, response.url);
    if (url === null) continue;
    const name = decodeURIComponent(url.pathname.slice(url.pathname.lastIndexOf("/") + 1));
    if (name !== file) continue;
    const fragment = /^#sha256=([0-9a-f]{64})$/i.exec(url.hash)?.[1]?.toLowerCase() ?? null;
    url.hash = "";
    return { url, sha256: sha256 ?? fragment };
  }
  return null;
}

interface RawLink {
  readonly href: string;
  readonly sha256: string | null;
}

function linksOfJson(text: string): RawLink[] {
  const page: unknown = JSON.parse(text);
  const files = isRecord(page) && Array.isArray(page["files"]) ? (page["files"] as unknown[]) : [];
  return files.flatMap((file) => {
    if (!isRecord(file) || typeof file["url"] !== "string") return [];
    const hashes = file["hashes"];
    const sha256 = isRecord(hashes) ? hashes["sha256"] : null;
    return [{ href: file["url"], sha256: typeof sha256 === "string" ? sha256 : null }];
  });
}

function linksOfHtml(text: string): RawLink[] {
  const anchors = text.matchAll(/<a\b[^>]*?\bhref\s*=\s*(?:"([^"]*)"|'([^']*)')/gi);
  return [...anchors].map(([, double, single]) => ({
    href: (double ?? single ?? "").replaceAll("&amp;", "&"),
    sha256: null,
  }));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The innermost reason, as `fetch` wraps what the socket said. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error.cause instanceof Error) return reasonOf(error.cause);
  const code = "code" in error && typeof error.code === "string" ? error.code : null;
  return code !== null && !error.message.includes(code)
    ? `${code}: ${error.message}`
    : error.message || (code ?? error.name);
}
