import { execFileSync } from "node:child_process";
import { cpSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { installOnce, runCommand } from "./install-folder.ts";
import { llamaCppSource, unpackLlamaCpp } from "./llama-cpp.ts";

/** The Go module, and the checksum of its source. */
export const ollamaModule = {
  path: "github.com/ollama/ollama",
  version: "0.17.4",
  sum: "h1:X3KNm9x4BlHqk/AXMGtC7pBAFd46nmJmy8yDaBZLo9s=",
};

/** What must be in PATH to build it. */
export const ollamaNeeds = ["go", "cc", "c++", "python3", "tar"];

// Go builds the engine's C++ for any x86 processor unless it is told: 15 prompt tokens a second, without its vector units.
const compilerFlags = [
  "-O3",
  ...(process.arch === "x64" ? ["-mavx2", "-mfma", "-mf16c", "-mbmi2"] : []),
];

/** Builds Ollama for the processor, eight minutes on two idle cores; gives the path of the program. */
export async function installOllama(): Promise<string> {
  const { path, sum, version } = ollamaModule;
  const how = [sum, llamaCppSource.version, ...compilerFlags];
  const folder = await installOnce(`ollama-${version}`, how, async (into) => {
    // Half a gigabyte of modules that only this build needs, in a folder that may be removed again.
    const go = { GOMODCACHE: join(into, "modules"), GOFLAGS: "-modcacherw" };
    const source = join(into, "source");
    cpSync(downloadModule(into, go), source, { recursive: true });
    // A module's archive has no folders named vendor; these headers lie in one, and llama.cpp's archive has them too.
    await unpackLlamaCpp(into);
    const headers = join(source, "llama/llama.cpp/vendor");
    cpSync(join(into, "vendor/llama.cpp/vendor"), headers, { recursive: true });
    const flags = compilerFlags.join(" ");
    const link = `-s -w -X ${path}/version.Version=${version}`;
    const build = ["go", "build", "-mod=mod", "-trimpath", "-ldflags", link] as const;
    await runCommand([...build, "-o", join(into, "ollama"), "."], source, {
      ...go,
      CGO_ENABLED: "1",
      CGO_CFLAGS: flags,
      CGO_CXXFLAGS: flags,
    });
    for (const file of readdirSync(into))
      if (file !== "ollama") rmSync(join(into, file), { recursive: true });
  });
  return join(folder, "ollama");
}

/** Gives the folder of the module's source, whose sum is the known one. */
function downloadModule(folder: string, go: Readonly<Record<string, string>>): string {
  const { path, sum, version } = ollamaModule;
  const download = ["mod", "download", "-json", `${path}@v${version}`];
  const env = { ...process.env, ...go };
  const told = execFileSync("go", download, { cwd: folder, env, encoding: "utf8" });
  const module = JSON.parse(told) as { readonly Dir: string; readonly Sum: string };
  if (module.Sum !== sum) throw new Error(`${path} ${version} has the sum ${module.Sum}`);
  return module.Dir;
}
