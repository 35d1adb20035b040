import { describe, expect, it } from "vitest";
import { cacheFolder, homeFolder } from "../../src/config/cache-folder.cjs";

describe("the cache folder follows the platform's convention", () => {
  it.each([
    ["linux", {}, "/u/ada", "/u/ada/.cache/tributary"],
    ["linux", { XDG_CACHE_HOME: "/big/disk" }, "/u/ada", "/big/disk/tributary"],
    ["linux", { XDG_CACHE_HOME: "not/absolute" }, "/u/ada", "/u/ada/.cache/tributary"],
    ["darwin", { XDG_CACHE_HOME: "/big" }, "/u/ada", "/u/ada/Library/Caches/tributary"],
    [
      "win32",
      { LOCALAPPDATA: "C:\\Users\\Ada\\AppData\\Local" },
      "C:\\Users\\Ada",
      "C:\\Users\\Ada\\AppData\\Local\\tributary\\Cache",
    ],
    ["win32", {}, "D:\\Ada", "D:\\Ada\\AppData\\Local\\tributary\\Cache"],
  ] as const)("%s with %o", (platform, environment, home, folder) => {
    expect(cacheFolder({ platform, environment, home })).toBe(folder);
  });
});

it("the home of a user whom the system does not know is the root, and nothing fails for it", () => {
  const unknown = (): string => {
    throw new Error("uv_os_homedir returned ENOENT");
  };
  expect([homeFolder(unknown), homeFolder(() => "/u/ada")]).toEqual(["/", "/u/ada"]);
});
