/** Bytes of weights on their way in. */
export interface WeightsProgress {
  readonly bytes: number;
  readonly totalBytes: number;
}

/** A file to fetch, by node-llama-cpp's own downloader. */
export interface DownloadOrder {
  /** An address, or `hf:OWNER/REPOSITORY/FILE`. */
  readonly uri: string;
  /** The URL whose head is asked for first. */
  readonly probe: ProbeOrder;
  readonly folder: string;
  /** null: as the address names it. */
  readonly fileName: string | null;
  readonly token: string | null;
  /** The hub, or a mirror of it. */
  readonly endpoint: string;
}

/** What is asked before a download. */
export interface ProbeOrder {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly isHub: boolean;
}

/** What a download needs from outside. */
export interface DownloadParts {
  readonly onProgress: (progress: WeightsProgress) => void;
  readonly signal: AbortSignal;
}

/** What came. The first file is the one to load. */
export interface Downloaded {
  readonly files: readonly { readonly name: string; readonly bytes: number }[];
  /** What the server says of a single file's hash, where it says. */
  readonly sha256: string | null;
}

/** A host that does not answer within this is taken for unreachable, so that the next source has its turn. */
const probeMs = 4_000;
/** A try that brings no byte for this long ends. */
const silenceMs = 60_000;

/**
 * Fetches what is missing into the folder. The file's head is asked for before, as the downloader alone tries for many
 * minutes where there is no network. Throws an Error whose message says everything.
 */
export async function download(order: DownloadOrder, parts: DownloadParts): Promise<Downloaded> {
  const sha256 = await probe(order.probe, parts.signal);
  // Loaded only when it is wanted: weights that are here need no downloader.
  const { createModelDownloader } = await import("node-llama-cpp");
  const silence = openSilence(parts.signal);
  const { authorization } = order.probe.headers;
  try {
    const downloader = await createModelDownloader({
      modelUri: order.uri,
      dirPath: order.folder,
      deleteTempFileOnCancel: false,
      onProgress: ({ downloadedSize, totalSize }) => {
        silence.heard();
        parts.onProgress({ bytes: downloadedSize, totalBytes: totalSize });
      },
      ...(order.fileName !== null && { fileName: order.fileName }),
      ...(authorization !== undefined && { headers: { authorization } }),
      ...(order.token !== null && { tokens: { huggingFace: order.token } }),
      // Named in any case: the downloader takes every address of the host that HF_ENDPOINT names for one of the hub.
      endpoints: { huggingFace: order.endpoint },
    });
    await downloader.download({ signal: silence.signal });
    const files = downloader.filesInfo.map(({ fileName, totalSize }) => ({
      name: fileName,
      bytes: totalSize,
    }));
    return { files, sha256: files.length === 1 ? sha256 : null };
  } finally {
    silence.end();
  }
}

async function probe(order: ProbeOrder, signal: AbortSignal): Promise<string | null> {
  const { headers, isHub, url } = order;
  const { origin } = new URL(url);
  let response: Response;
  try {
    response = await fetch(url, {
      method: "HEAD",
      headers: { "accept-encoding": "identity", ...headers },
      // The hub tells the hash in the answer that redirects, its storage does not.
      redirect: isHub ? "manual" : "follow",
      signal: AbortSignal.any([signal, AbortSignal.timeout(probeMs)]),
    });
  } catch (error) {
    signal.throwIfAborted();
    throw new Error(`${origin} cannot be reached (${reasonOf(error)})`, { cause: error });
  }
  const problem = problemOfStatus(response.status, isHub);
  if (problem !== null)
    throw new Error(`${origin} answered ${String(response.status)}: ${problem}`);
  const etag = response.headers.get("x-linked-etag") ?? "";
  return /^(?:W\/)?"?([0-9a-f]{64})"?$/i.exec(etag)?.[1] ?? null;
}

function problemOfStatus(status: number, isHub: boolean): string | null {
  // Some servers know no HEAD; the download itself then tells.
  if (status < 400 || status === 405 || status === 501) return null;
  if (status === 404) return "there is no such file";
  if (status !== 401 && status !== 403) return "try again later";
  return isHub
    ? "there is no such repository, or it wants a token whose owner accepted its terms (HF_TOKEN)"
    : "it wants a name and a password (https://NAME:PASSWORD@HOST/...)";
}

function openSilence(stop: AbortSignal) {
  const silent = new AbortController();
  const timer = setTimeout(
    () => silent.abort(new Error(`no byte came for ${String(silenceMs / 1_000)} s`)),
    silenceMs,
  );
  return {
    signal: AbortSignal.any([stop, silent.signal]),
    heard: () => void timer.refresh(),
    end: () => clearTimeout(timer),
  };
}

/** The innermost reason, in words. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? reasonOf(error.cause) : error.message;
}
