import { Command, type CommandUnknownOpts } from "@commander-js/extra-typings";
import { expect, test } from "vitest";
import { apiCalls } from "../../src/cli/api-calls.ts";
import { addCommands } from "../../src/cli/commands.ts";
import { openRecordingShell, plainShell } from "../cli/recording-shell.ts";
import { readDocument, rowsOf } from "./tables.ts";

const program = new Command("tributary");
addCommands({ program, shell: { ...plainShell("/", {}), json: false }, finish: () => {} });
const actions = program.commands.flatMap((one) => actionsOf(one, []));

interface Action {
  /** `account create NAME` */
  readonly usage: string;
  /** `--credit` */
  readonly options: readonly string[];
}

function actionsOf(command: CommandUnknownOpts, path: readonly string[]): Action[] {
  const name = [...path, command.name()];
  if (command.commands.length > 0)
    return command.commands.flatMap((inner) => actionsOf(inner, name));
  const words = command.registeredArguments.map((word) =>
    word.required ? word.name() : `[${word.name()}]`,
  );
  const options = command.options.map(({ long }) => long ?? "");
  return [{ usage: [...name, ...words].join(" "), options }];
}

test("docs/commands.md lists the commands that there are, with their words and options, and no other", () => {
  const rows = rowsOf(readDocument("docs/commands.md"), /^`(?:serve|[a-z]+(?: [a-z]+)?)[ `]/);
  const listed = rows.flatMap(([cell = ""]) =>
    [...cell.replaceAll("\\|", "|").matchAll(/`([^`]+)`/g)].map(([, usage = ""]) => usage),
  );
  const known = new Map(actions.map(({ usage, options }) => [usage, options]));
  const usages = listed.map((usage) => usage.replaceAll(/ \[?--[a-z-]+(?: [^\s\]]+)?\]?/g, ""));
  expect(usages).toContain("key create ACCOUNT");
  expect(new Set(usages)).toEqual(new Set(known.keys()));
  for (const [index, usage] of usages.entries()) {
    const options = listed[index]?.match(/--[a-z-]+/g) ?? [];
    expect(known.get(usage)).toEqual(expect.arrayContaining(options));
  }
});

test("every command with a call of the operators' API is one that there is, and takes --url", () => {
  for (const words of Object.keys(apiCalls)) {
    const found = actions.find(({ usage }) => `${usage} `.startsWith(`${words} `));
    expect([words, found?.options]).toEqual([words, expect.arrayContaining(["--url"])]);
  }
});

test("--help names every action of every group", async () => {
  const { stdout } = await openRecordingShell("/")("--help");
  expect(stdout).toContain(
    "\n  account create|list|show|credit|disable|enable|price|change|statement  ",
  );
  for (const { usage } of actions) expect(stdout).toContain(usage.split(" ")[0]);
});

test.each(actions)("$usage has help that shows how it is called", async ({ usage, options }) => {
  const words = usage.split(" ").filter((word) => /^[a-z]/.test(word));
  const result = await openRecordingShell("/")(...words, "--help");
  expect(result).toMatchObject({ exitCode: 0, stderr: "" });
  expect(result.stdout).toContain(`Usage: tributary ${words.join(" ")} [options]`);
  for (const option of options) expect(result.stdout).toMatch(new RegExp(`^ {2}${option}\\b`, "m"));
});

test("serve --help lists the usual settings with what stands when they are not set", async () => {
  const { stdout } = await openRecordingShell("/")("serve", "--help");
  expect(stdout).toMatch(/^ {2}TRIBUTARY_PORT +where to listen; .*\(8080\)$/m);
  expect(stdout).toMatch(/^ {2}TRIBUTARY_DEPLOYMENT_URL .*\(the embedded engine\)$/m);
  expect(stdout.match(/^ {2}TRIBUTARY_\w+/gm)).toHaveLength(10);
});
