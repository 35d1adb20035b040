import { describe, expect, it } from "vitest";
import {
  agentContextTokensMin,
  agentRecipes,
  agentsNeedMore,
  curlRecipes,
  firstCurl,
  frameworkRecipes,
  pythonRecipes,
  type Recipe,
  sdkRecipes,
} from "../../src/cli/client-recipes.ts";
import { nodePackages, pythonPackages } from "../clients/installed/packages.ts";
import { readDocument } from "./tables.ts";

const access = { url: "http://127.0.0.1:8080", key: "YOUR_KEY" };

function fenced({ language, text }: Recipe): string {
  return `\`\`\`${language}\n${text}\n\`\`\``;
}

describe.each([
  { path: "README.md", recipes: [firstCurl(access)], callsMin: 1 },
  {
    path: "docs/clients.md",
    recipes: [
      ...curlRecipes(access),
      ...sdkRecipes(access),
      ...pythonRecipes(access),
      ...frameworkRecipes(access),
      ...agentRecipes(access, 2 * agentContextTokensMin),
    ],
    callsMin: 9,
  },
])("$path", ({ callsMin, path, recipes }) => {
  it.each(recipes)("has the tried lines for $title", (recipe) => {
    const document = readDocument(path);
    const wanted = recipe.language === "sh" ? recipe.text : fenced(recipe);
    expect(document).toContain(wanted);
  });

  it("has no other call of the service", () => {
    const known = recipes.map(({ text }) => text).join("\n");
    const calls = readDocument(path).match(/^(?:curl|ANTHROPIC_|SERVICE_KEY|OPENCODE_).*$/gm) ?? [];
    expect(calls.length).toBeGreaterThanOrEqual(callsMin);
    expect(calls.filter((line) => !known.includes(line))).toEqual([]);
  });
});

describe("docs/clients.md", () => {
  it.each(
    Object.entries({ ...pythonPackages, ...nodePackages }).filter(([name]) => name !== "zod"),
  )("names the version of %s that is tried", (name, version) => {
    const words = readDocument("docs/clients.md").replaceAll(/\s+/gu, " ");
    expect(words).toContain(`\`${name}\` ${version}`);
  });
});

describe("the lines for clients", () => {
  it("cover the three formats, streamed and not", () => {
    expect(curlRecipes(access).map(({ title }) => title)).toEqual([
      "Chat Completions",
      "Chat Completions, streamed",
      "Responses",
      "Responses, streamed",
      "Messages",
      "Messages, streamed",
    ]);
  });

  it("say the base address with /v1 where the client wants it, and without where it adds it itself", () => {
    const [openai, anthropic] = sdkRecipes(access);
    expect(openai?.text).toContain('"http://127.0.0.1:8080/v1"');
    expect(anthropic?.text).toContain('"http://127.0.0.1:8080"');
    const [claude, codex, opencode] = agentRecipes(access, 131_072);
    expect(claude?.text).toContain("ANTHROPIC_BASE_URL=http://127.0.0.1:8080 ");
    expect(codex?.text).toContain('base_url="http://127.0.0.1:8080/v1"');
    expect(opencode?.text).toContain('"baseURL":"http://127.0.0.1:8080/v1"');
  });

  it("name the smallest deployment that agents can use", () => {
    expect(agentsNeedMore).toContain(agentContextTokensMin.toLocaleString("en"));
  });
});
