import { expect, test } from "vitest";
import { openRecordingShell } from "../cli/recording-shell.ts";
import { readDocument, rowsOf } from "./tables.ts";

/** `account create` of `account create NAME [--credit C]`: what comes before the first operand or option. */
function nameOf(usage: string): string {
  return /^[a-z]+(?: [a-z]+)?(?= |$)/.exec(usage)?.[0] ?? "";
}

test("README.md lists the commands that --help lists, and no other", async () => {
  const { stdout } = await openRecordingShell("/")("--help");
  const indented = stdout.split("\n").filter((line) => /^ {2}[a-z]/.test(line));
  const helped = indented.flatMap((line) => line.trim().split(/ {2,}/)[0]?.split(", ").map(nameOf));
  const rows = rowsOf(readDocument("README.md"), /^`(?:serve|[a-z]+(?: [a-z]+)?)[ `]/);
  const listed = rows.flatMap(([cell = ""]) =>
    [...cell.replaceAll("\\|", "|").matchAll(/`([^`]+)`/g)].map(([, usage = ""]) => nameOf(usage)),
  );
  expect(helped).toContain("verify");
  expect(new Set(listed)).toEqual(new Set(helped));
});

test.each(["usage", "receipt", "verify", "checkpoint", "account create", "key create"])(
  "%s has help that shows how it is called",
  async (name) => {
    const result = await openRecordingShell("/")(...name.split(" "), "--help");
    expect(result).toMatchObject({ exitCode: 0, stderr: "" });
    expect(result.stdout).toContain(`  tributary ${name} `);
  },
);

test("serve --help lists the usual settings with what stands when they are not set", async () => {
  const { stdout } = await openRecordingShell("/")("serve", "--help");
  expect(stdout).toMatch(/^ {2}TRIBUTARY_PORT +where to listen; .*\(8080\)$/m);
  expect(stdout).toMatch(/^ {2}TRIBUTARY_DEPLOYMENT_URL .*\(the embedded engine\)$/m);
  expect(stdout.match(/^ {2}TRIBUTARY_\w+/gm)).toHaveLength(10);
});
