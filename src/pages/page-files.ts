import type { IncomingMessage, ServerResponse } from "node:http";
import { readdir, readFile, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The built files of one page: `/`, and what stands under `/console/`. */
export interface PageFiles {
  /** Whether there is a build to serve. */
  isBuilt(): Promise<boolean>;
  /** Whether a path is the page or would be one of its files. */
  has(path: string): boolean;
  /** Answers a GET or HEAD of one of them; says 404 or, where nothing is built, 503 with what to do. */
  readonly answer: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
}

const encodings = [
  ["br", ".br"],
  ["gzip", ".gz"],
] as const;
type Encoding = (typeof encodings)[number][0] | "identity";

interface PageFile {
  readonly type: string;
  readonly bytes: Readonly<Partial<Record<Encoding, Uint8Array>>>;
}

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
};

// No script, style or connection but our own, and no text that a script makes into elements.
const pageHeaders = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
} as const;

const notBuilt =
  "The console is not built. Run `npm run build:console` and load this page again. The API and the commands work without it.\n";

/** The files of a page by its name, from where the build puts them: beside `src/`, and beside `dist/` in the package. */
export function openPageFiles(name: "operators" | "callers"): PageFiles {
  return readPageFiles(fileURLToPath(new URL(`../../console/dist/${name}`, import.meta.url)));
}

/** The files of a folder. They are read when they are first wanted, and again when a build has made others. */
export function readPageFiles(folder: string): PageFiles {
  const start = join(folder, "index.html");
  let read: {
    readonly builtMs: number;
    readonly files: Promise<ReadonlyMap<string, PageFile>>;
  } | null = null;
  async function find(): Promise<ReadonlyMap<string, PageFile> | null> {
    const builtMs = await stat(start).then(({ mtimeMs }) => mtimeMs, ignore);
    if (builtMs === null) return null;
    if (read?.builtMs !== builtMs) read = { builtMs, files: readFolder(folder) };
    return read.files;
  }
  return {
    has: (path) => path === "/" || path.startsWith("/console/"),
    isBuilt: async () => (await stat(start).catch(ignore)) !== null,
    async answer(request, response) {
      const files = await find();
      if (files === null) {
        send(response, { status: 503, headers: { "content-type": "text/plain" }, body: notBuilt });
        return;
      }
      const [path = ""] = (request.url ?? "").split("?", 1);
      const name = path === "/" ? "index.html" : path.replace(/^\/console\//, "");
      const file = files.get(name);
      if (file === undefined) {
        const body = "There is no such file. The page begins at /.\n";
        send(response, { status: 404, headers: { "content-type": "text/plain" }, body });
        return;
      }
      if (request.method !== "GET" && request.method !== "HEAD") {
        send(response, { status: 405, headers: { allow: "GET, HEAD" }, body: "" });
        return;
      }
      const encoding = pickEncoding(file, request.headers["accept-encoding"]);
      const body = file.bytes[encoding] ?? new Uint8Array();
      send(response, {
        status: 200,
        headers: {
          "content-type": file.type,
          vary: "accept-encoding",
          // A file's name has the hash of what is in it; the page itself names the newest files.
          "cache-control":
            name === "index.html" ? "no-cache" : "public, max-age=31536000, immutable",
          ...(encoding === "identity" ? {} : { "content-encoding": encoding }),
        },
        body: request.method === "HEAD" ? "" : body,
      });
    },
  };
}

function send(
  response: ServerResponse,
  answer: {
    readonly status: number;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string | Uint8Array;
  },
): void {
  const { body, headers, status } = answer;
  response.writeHead(status, { ...pageHeaders, ...headers }).end(body);
}

async function readFolder(folder: string): Promise<ReadonlyMap<string, PageFile>> {
  const files = new Map<string, PageFile>();
  const names = await readdir(folder);
  await Promise.all(
    names.map(async (name) => {
      const type = types[extname(name)];
      if (type === undefined) return;
      const bytes: Partial<Record<Encoding, Uint8Array>> = {
        identity: await readFile(join(folder, name)),
      };
      for (const [encoding, ending] of encodings)
        if (names.includes(name + ending))
          bytes[encoding] = await readFile(join(folder, name + ending));
      files.set(name, { type, bytes });
    }),
  );
  return files;
}

/** The smallest of what the file has and the browser takes. */
function pickEncoding({ bytes }: PageFile, accepts: string | undefined): Encoding {
  const accepted = (accepts ?? "")
    .split(",")
    .map((part) => part.trim().split(";"))
    .filter(([, quality]) => quality?.trim() !== "q=0")
    .map(([name]) => name);
  for (const [encoding] of encodings)
    if (accepted.includes(encoding) && bytes[encoding] !== undefined) return encoding;
  return "identity";
}

function ignore(): null {
  return null;
}
