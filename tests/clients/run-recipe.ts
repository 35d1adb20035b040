import { spawn } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { text } from "node:stream/consumers";
import { describe, expect, it } from "vitest";
import type { Access, Recipe } from "../../src/cli/client-recipes.ts";
import { useService } from "./use-service.ts";

/** How a program that is given as text is run, and in which folder, which decides whose packages it gets. */
export interface Interpreter {
  readonly command: readonly string[];
  readonly folder: string;
}

/** Node, with the packages of a folder. */
export function nodeIn(folder: string): Interpreter {
  return { command: [process.execPath, "--input-type=module", "--eval"], folder };
}

/** The lines that documents show, run as they are: they print what the deployment says. */
export function describeRecipes(
  recipes: readonly (readonly [client: string, recipe: (access: Access) => Recipe | undefined])[],
  { command, folder }: Interpreter,
): void {
  const service = useService();
  for (const [client, recipe] of recipes) {
    describe(`${client}, its recipe`, () => {
      it("prints what the deployment says", async () => {
        const lines = recipe({ url: service().url, key: service().key })?.text ?? "";
        const [program = "", ...options] = command;
        const env = { PATH: process.env["PATH"], HOME: tmpdir(), LANG: "C.UTF-8" };
        const child = spawn(program, [...options, lines], {
          cwd: folder,
          env,
          stdio: ["ignore", "pipe", "pipe"],
          timeout: 100_000,
        });
        const [stdout, stderr] = await Promise.all([
          text(child.stdout),
          text(child.stderr),
          once(child, "close"),
        ]);
        expect({ stdout: stdout.trim(), stderr }).toEqual({
          stdout: "Hello from the deployment.",
          stderr: "",
        });
      });
    });
  }
}
