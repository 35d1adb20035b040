import { expect, test } from "vitest";
import { describeFirstStart, describeStart, type FirstKey } from "../../src/cli/welcome.ts";

const first: FirstKey = {
  accountId: "acct_0JoK0jUVShnfK1T",
  accountName: "first",
  balance: "10",
  key: `trib_0JoK0jUVShnfK1T_15ua5vGFucpj18b_${"x".repeat(43)}`,
};
const started = {
  url: "http://127.0.0.1:8080",
  model: "smollm2-135m-instruct",
  ready: true,
  free: false,
  programName: "npm run -s tributary --",
  loginLink: `http://127.0.0.1:8081/#sign-in=trlo_0JoK0jUVShnfK1T_${"x".repeat(22)}`,
};

/** Rows that a text takes on a terminal of that width. */
function rowsOf(text: string, columns: number): number {
  const lines = text.replace(/\n$/, "").split("\n");
  return lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / columns)), 0);
}

test.each([
  ["as it mostly is", started, first],
  ["without its model", { ...started, ready: false }, first],
  ["without credit", { ...started, ready: false }, { ...first, balance: "0" }],
  [
    "on a long address",
    { ...started, ready: false, url: "http://[2001:db8:ffff:ffff:ffff:ffff:ffff:ffff]:65535" },
    { ...first, balance: "1000000000.123456789" },
  ],
])("the first screen %s fits 80 columns and 24 rows", (_which, now, key) => {
  const screen = describeFirstStart(now, key);
  // One row is the cursor's.
  expect(rowsOf(screen, 80)).toBeLessThanOrEqual(23);
  expect(rowsOf(screen, Infinity)).toBeLessThanOrEqual(15);
  expect(rowsOf(describeStart(now), 80)).toBeLessThanOrEqual(23);
});

test("the first screen has the address, the key on a line of its own, one request, and where the rest is", () => {
  const screen = describeFirstStart(started, first);
  expect(screen).toContain(
    "Tributary serves on http://127.0.0.1:8080 with smollm2-135m-instruct\n",
  );
  expect(screen.split("\n")).toContain(first.key);
  expect(screen.split("\n")).toContain(started.loginLink);
  expect(describeFirstStart({ ...started, loginLink: null }, first)).not.toContain("Sign in");
  expect(screen.match(/^curl .*$/gm)).toHaveLength(1);
  expect(screen).toContain("npm run -s tributary -- connect\n");
  expect(screen).toContain("http://127.0.0.1:8080/#/clients\n");
  const socket = describeFirstStart({ ...started, url: "unix:/run/tributary" }, first);
  expect(socket).not.toContain("#/clients");
  expect(screen).toContain("npm run -s tributary -- doctor\n");
  expect(screen).not.toMatch(/not there yet|no credit/);
});

test("an account without credit is told how it gets some, and a model that is missing is said", () => {
  const screen = describeFirstStart({ ...started, ready: false }, { ...first, balance: "0" });
  expect(screen).toContain("npm run -s tributary -- account credit acct_0JoK0jUVShnfK1T 10\n");
  expect(screen).toContain("The model is not there yet");
  expect(screen).not.toContain("smollm2");
  const free = describeFirstStart({ ...started, free: true }, { ...first, balance: "0" });
  expect(free).not.toContain("no credit");
});
