import { readdirSync, renameSync, rmSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { installOnce, runCommand } from "./install-folder.ts";

/** The package whose source holds llama.cpp's, with its version. */
export const llamaCppSource = { name: "llama-cpp-python", version: "0.3.36" };

/** What must be in PATH to build it. */
export const llamaCppNeeds = ["cmake", "cc", "c++", "python3", "tar"];

// GGML_NATIVE builds for what the processor announces, and the server then dies at loading on virtual machines that
// announce matrix units which they do not have; these are what every x86 server of the last ten years has.
const processorFlags =
  process.arch === "x64"
    ? ["-DGGML_AVX2=ON", "-DGGML_FMA=ON", "-DGGML_F16C=ON", "-DGGML_BMI2=ON"]
    : [];

// One file without shared libraries can be moved; without curl and tests it needs nothing but a compiler.
const flags = [
  "-DCMAKE_BUILD_TYPE=Release",
  "-DBUILD_SHARED_LIBS=OFF",
  "-DLLAMA_CURL=OFF",
  "-DLLAMA_OPENSSL=OFF",
  "-DLLAMA_BUILD_TESTS=OFF",
  "-DLLAMA_BUILD_EXAMPLES=OFF",
  "-DGGML_NATIVE=OFF",
  ...processorFlags,
];

/** Builds llama.cpp's own server, a quarter of an hour on two cores; gives the path of the program. */
export async function installLlamaCpp(): Promise<string> {
  const { version } = llamaCppSource;
  const folder = await installOnce(`llama-cpp-${version}`, flags, async (into) => {
    await unpackLlamaCpp(into);
    await runCommand(["cmake", "-S", "vendor/llama.cpp", "-B", "b", ...flags], into);
    const build = ["cmake", "--build", "b", "--target", "llama-server"] as const;
    await runCommand([...build, "-j", String(availableParallelism())], into);
    renameSync(join(into, "b/bin/llama-server"), join(into, "llama-server"));
    for (const file of readdirSync(into))
      if (file !== "llama-server") rmSync(join(into, file), { recursive: true });
  });
  return join(folder, "llama-server");
}

/** Downloads the package's source into a folder and unpacks it there; llama.cpp's is in `vendor/llama.cpp`. */
export async function unpackLlamaCpp(into: string): Promise<void> {
  const { name, version } = llamaCppSource;
  const wanted = `${name}==${version}`;
  const download = ["-m", "pip", "download", "--no-deps", "--no-binary", name] as const;
  await runCommand(["python3", ...download, "--no-input", "-q", wanted], into);
  const archive = readdirSync(into).find((file) => file.endsWith(".tar.gz"));
  if (archive === undefined) throw new Error(`${wanted} has no source archive`);
  await runCommand(["tar", "xzf", archive, "--strip-components=1"], into);
}
