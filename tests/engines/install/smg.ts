import { join } from "node:path";
import { installInPlace, runCommand } from "./install-folder.ts";

/** The package of SGLang's router. */
export const smgPackage = { name: "sglang-router", version: "0.3.2" };

/** A Python environment with SGLang's router, 120 MB; gives the path of its program. */
export async function installSmg(): Promise<string> {
  const { name, version } = smgPackage;
  const wanted = `${name}==${version}`;
  const folder = await installInPlace(`smg-${version}`, [wanted], async (into) => {
    await runCommand(["python3", "-m", "venv", "."], into);
    // From source it would need a Rust compiler and an hour.
    const pip = ["bin/python", "-m", "pip", "install", "-q", "--no-input"] as const;
    const only = ["--disable-pip-version-check", "--only-binary", name] as const;
    await runCommand([...pip, ...only, wanted], into);
  });
  return join(folder, "bin", "smg");
}
