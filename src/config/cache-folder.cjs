// Plain CommonJS, as `cli/tributary.cjs` wants it before any TypeScript is loaded.
"use strict";

const { homedir } = require("node:os");
const { isAbsolute, join, win32 } = require("node:path");

exports.cacheFolder = function cacheFolder({ environment, home, platform }) {
  if (platform === "win32") {
    const local = (environment.LOCALAPPDATA ?? "").trim();
    const folder = local === "" ? win32.join(home, "AppData", "Local") : local;
    return win32.join(folder, "tributary", "Cache");
  }
  if (platform === "darwin") return join(home, "Library", "Caches", "tributary");
  // The XDG specification: a path that is not absolute is ignored.
  const given = (environment.XDG_CACHE_HOME ?? "").trim();
  return join(isAbsolute(given) ? given : join(home, ".cache"), "tributary");
};

exports.homeFolder = function homeFolder(ask = homedir) {
  try {
    return ask();
  } catch {
    return "/";
  }
};
