import { expect, it } from "vitest";
import { explainName, spellCommands } from "../../src/cli/spell-commands.ts";

const name = "npm run -s tributary --";

it("spells a command of ours as it is called, and nothing else", () => {
  const spelled = (text: string): string => spellCommands(text, name);
  expect(spelled("`tributary account list` shows; tributary key create ACCOUNT")).toBe(
    `\`${name} account list\` shows; ${name} key create ACCOUNT`,
  );
  for (const same of [
    `See: ${name} account --help`,
    "npx tributary-gateway account list",
    "the schema tributary of the other one",
    "postgres://tributary@host/ledger",
  ])
    expect(spelled(same)).toBe(same);
  expect(spellCommands("tributary verify", "npx tributary-gateway")).toBe(
    "npx tributary-gateway verify",
  );
});

it("says below a help text how the program is called, where that is not its name", () => {
  expect(explainName(name)).toContain(`${name} COMMAND`);
  expect(explainName("tributary")).toBe("");
});
