import { expect, it } from "vitest";
import { spellCommands } from "../../src/cli/command.ts";

const name = "npm run -s tributary --";

it("spells a command of ours as it is called, and nothing else", () => {
  const spelled = (text: string): string => spellCommands(text, name);
  expect(spelled("`tributary account list` shows; `tributary seal rotate` makes one")).toBe(
    `\`${name} account list\` shows; \`${name} seal rotate\` makes one`,
  );
  for (const same of [
    `See: ${name} account --help`,
    "npx tributary-gateway account list",
    "the schema tributary of the other one",
    "postgres://tributary@host/ledger",
  ])
    expect(spelled(same)).toBe(same);
});
