#!/usr/bin/env node
// What runs before the program: plain CommonJS that every Node since 12 parses, so that an old one says what is needed
// instead of a SyntaxError in the program, or that it does not know the extension .ts.
"use strict";

const { existsSync } = require("fs");
const { join } = require("path");

// Node would open its inspector, which runs any code for any user of this machine.
process.on("SIGUSR1", () => {});

/** The first version of `engines` in package.json. */
const majorMin = 24;

const { node } = process.versions;
const inClone = existsSync(join(__dirname, "main.ts"));

if (Number(node.split(".")[0]) < majorMin) {
  const remedy = inClone
    ? "npm start and npm run -s tributary -- COMMAND take the Node that npm ci has installed here."
    : `Install a newer one from https://nodejs.org, or beside your package.json: npm install node@${majorMin}`;
  process.stderr.write(
    `Tributary needs Node ${majorMin} or later; this is Node ${node}, ${process.execPath}. ${remedy}\n`,
  );
  process.exitCode = 1;
} else {
  keepCompiled();
  void import(inClone ? "./main.ts" : "./main.js");
}

/**
 * Compiling is most of a start, and before any TypeScript is loaded: what is found compiled is not stripped of its types,
 * for which Node would load a compiler of 30 MiB. Kept among this user's own files: from a folder that others may write
 * to, their code could be loaded. Where there is none, every start compiles.
 */
function keepCompiled() {
  const { constants, enableCompileCache } = require("module");
  const { cacheFolder, homeFolder } = require("../config/cache-folder.cjs");
  const { env, platform } = process;
  const compiled = join(
    cacheFolder({ environment: env, platform, home: homeFolder() }),
    "compiled",
  );
  // Threads, and processes that are started, have a part in it by Node's own variable alone.
  if (enableCompileCache(compiled).status === constants.compileCacheStatus.ENABLED)
    env.NODE_COMPILE_CACHE = compiled;
}
