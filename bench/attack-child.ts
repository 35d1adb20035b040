import { attacks } from "./attacks.ts";

// One attack in a process of its own, so that it keeps the load generator from nothing; ends with its input.

const [, , name, origin = "", key = ""] = process.argv;
const attack = attacks.find((one) => one.name === name);
if (attack === undefined) throw new Error("attack-child.ts NAME ORIGIN KEY");
const ended = new AbortController();
process.stdin.on("end", () => ended.abort()).resume();
await attack.run({ origin, key, share: 1 }, ended.signal);
process.exit();
