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
  void import(inClone ? "./main.ts" : "./main.js");
}
