import { processEnvironment, readEnvironment } from "../config/environment.ts";
import type { Output, Shell } from "./command.ts";
import { onePress } from "./one-press.ts";
import { runCommandLine } from "./run-command.ts";

const folder = process.cwd();

const shell: Omit<Shell, "json"> = {
  folder,
  environment: () => readEnvironment(folder),
  isFromFile: (name) => processEnvironment()[name] === undefined,
  stdout: openOutput(process.stdout),
  stderr: openOutput(process.stderr),
  programName: import.meta.url.endsWith(".ts")
    ? "npm run -s tributary --"
    : "npx tributary-gateway",
  onSignal(listener) {
    const heard = onePress(listener, () => performance.now());
    process.on("SIGINT", heard);
    process.on("SIGTERM", heard);
    return () => {
      process.off("SIGINT", heard);
      process.off("SIGTERM", heard);
    };
  },
  exit: (code) => process.exit(code),
};

process.exitCode = await runCommandLine(process.argv.slice(2), shell);

function openOutput(stream: NodeJS.WriteStream): Output {
  // The reader may leave early, as `head` does; that is no failure of the command.
  stream.on("error", () => {});
  return { write: (text) => void stream.write(text), terminal: stream.isTTY };
}
