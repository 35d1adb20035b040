import { describe, expect, it } from "vitest";
import { lackTitle } from "../clients/capabilities.ts";
import { type SeenTest, seeTest, tabulate } from "./sdk-table.ts";

const test = (
  suites: readonly string[],
  outcome: SeenTest["outcome"],
  title = "a title",
): SeenTest => ({ suites, outcome, title, words: "why" });

describe("the table of clients", () => {
  const tests = [
    test(["openai chat", "text"], "passed"),
    test(["openai chat", "text"], "passed"),
    test(["openai chat", "errors", "whole"], "failed", "is 402"),
    test(["openai chat", "token count"], "lacking", "token count: none of it"),
    test(["openai chat, alone"], "passed"),
    test(["Codex"], "passed"),
    test(["Python openai chat", "text"], "passed"),
    test(["Python openai chat", "text"], "lacking", "nothing: it asks again"),
    test(["Python openai chat", "token count"], "lacking", "token count: none of it"),
  ];
  const versions = { openai: "7.0.0", "Python openai": "3.0.0" };
  const { failed, failures, notes, passed, table } = tabulate(tests, versions);
  const [head = [], ...rows] = table;
  const cell = (client: string, column: string): string | undefined =>
    rows.find(([name]) => name === client)?.[head.indexOf(column)];

  it("has a row for each client, with the version that was tried", () => {
    expect(rows.map((row) => row.slice(0, 2))).toEqual([
      ["openai chat", "7.0.0"],
      ["Codex", ""],
      ["Python openai chat", "3.0.0"],
    ]);
  });

  it("counts what passed by capability, and shows that something failed", () => {
    expect(cell("openai chat", "text")).toBe("2 ok");
    expect(cell("openai chat", "errors")).toBe("1 FAILED");
    expect(cell("openai chat", "its own")).toBe("1 ok");
    expect(cell("openai chat", "models")).toBe("-");
    expect(cell("Codex", "its own")).toBe("1 ok");
  });

  it("shows what a client lacks, with its reason once", () => {
    expect(cell("openai chat", "token count")).toBe("none [1]");
    expect(cell("Python openai chat", "token count")).toBe("none [1]");
    expect(cell("Python openai chat", "text")).toBe("1 ok [2]");
    expect(notes).toEqual(["[1] token count: none of it", "[2] nothing: it asks again"]);
  });

  it("counts neither way what is lacking", () => {
    expect([passed, failed]).toEqual([5, 1]);
    expect(failures).toEqual(["openai chat > errors > whole > is 402 > why"]);
  });
});

describe("a test of the report", () => {
  const suites = ["openai chat", "models"];
  const title = lackTitle("models", "no call for it");

  it("tells what a client lacks when it was skipped for that", () => {
    const seen = seeTest({ suites, title, status: "skipped", words: "" });
    expect(seen).toMatchObject({ outcome: "lacking", title: "models: no call for it" });
  });

  it("has failed when it did not run for another reason", () => {
    const seen = seeTest({ suites, title: "lists two", status: "skipped", words: "" });
    expect(seen).toMatchObject({ outcome: "failed", words: "it did not run" });
  });

  it("has failed when it failed, whatever its title", () => {
    const seen = seeTest({ suites, title, status: "failed", words: "why" });
    expect(seen).toMatchObject({ outcome: "failed", words: "why" });
  });
});
