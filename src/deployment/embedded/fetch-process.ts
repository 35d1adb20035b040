/**
 * The child's entry. node-llama-cpp's downloader runs in a process of its own: it tries for minutes where there is no
 * network, and a download that it is asked to stop is lost, while one whose process ends is continued by the next.
 */
import type { FetchOrder, FetchReport } from "./fetch-messages.ts";
import type { HuggingFaceFile } from "./model-address.ts";

const probeMs = 15_000;
const defaultEndpoint = "https://huggingface.co";

function report(message: FetchReport): Promise<void> {
  return new Promise((resolve) => {
    if (!process.connected || process.send === undefined) return resolve();
    process.send(message, () => resolve());
  });
}

/** Asks the server for the file's head, so that what cannot work is told at once and in words. */
async function probe(order: FetchOrder): Promise<string | null> {
  const { address, endpoint, token } = order;
  const headers: Record<string, string> = { "accept-encoding": "identity" };
  if (address.authorization !== null) headers["authorization"] = address.authorization;
  if (address.huggingFace !== null && token !== null) headers["authorization"] = `Bearer ${token}`;
  const url =
    address.huggingFace === null ? address.uri : fileUrl(address.huggingFace, endpoint ?? "");
  const { origin } = new URL(url);
  let response: Response;
  try {
    // Hugging Face tells the hash in the answer that redirects, its storage does not.
    response = await fetch(url, {
      method: "HEAD",
      headers,
      redirect: address.huggingFace === null ? "follow" : "manual",
      signal: AbortSignal.timeout(probeMs),
    });
  } catch (error) {
    throw new UnreachableError(`${origin} cannot be reached (${reasonOf(error)})`, {
      cause: error,
    });
  }
  const problem = problemOfStatus(response.status, address.huggingFace !== null);
  if (problem !== null) throw new Error(`${origin} answered ${response.status}: ${problem}`);
  return (
    /^(?:W\/)?"?([0-9a-f]{64})"?$/i.exec(response.headers.get("x-linked-etag") ?? "")?.[1] ?? null
  );
}

function problemOfStatus(status: number, isHuggingFace: boolean): string | null {
  // Some servers know no HEAD; the download itself then tells.
  if (status < 400 || status === 405 || status === 501) return null;
  if (status === 404) return "there is no such file";
  if (status === 401 || status === 403)
    return isHuggingFace
      ? "there is no such repository, or it wants a token whose owner accepted its terms (HF_TOKEN)"
      : "it wants a name and a password (https://NAME:PASSWORD@HOST/...)";
  return "try again later";
}

function fileUrl({ branch, owner, path, repository }: HuggingFaceFile, endpoint: string): string {
  const base = (endpoint === "" ? defaultEndpoint : endpoint).replace(/\/+$/, "");
  const parts = [owner, repository, "resolve", branch, ...path.split("/")];
  return `${base}/${parts.map((part) => encodeURIComponent(part)).join("/")}`;
}

async function download(order: FetchOrder): Promise<FetchReport> {
  const sha256 = await probe(order);
  const { createModelDownloader } = await import("node-llama-cpp");
  const { address, endpoint, folder, token } = order;
  const { authorization } = address;
  const downloader = await createModelDownloader({
    modelUri: address.uri,
    dirPath: folder,
    deleteTempFileOnCancel: false,
    onProgress: ({ downloadedSize, totalSize }) =>
      void report({ type: "progress", bytes: downloadedSize, totalBytes: totalSize }),
    ...(authorization !== null && { headers: { authorization } }),
    ...(token !== null && { tokens: { huggingFace: token } }),
    ...(endpoint !== null && { endpoints: { huggingFace: endpoint } }),
  });
  await downloader.download();
  const files = downloader.filesInfo.map(({ fileName, totalSize }) => ({
    name: fileName,
    bytes: totalSize,
  }));
  return { type: "fetched", files, sha256: files.length === 1 ? sha256 : null };
}

/** Its message says everything. */
class UnreachableError extends Error {
  override readonly name = "UnreachableError";
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof UnreachableError) return error.message;
  if (error.cause instanceof Error) return reasonOf(error.cause);
  return error.message;
}

process.on("message", (message) => {
  void download(message as FetchOrder)
    .catch((error: unknown): FetchReport => ({ type: "failed", reason: reasonOf(error) }))
    .then(report)
    .then(() => process.exit(0));
});
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
