import { openSqliteLedger } from "../../src/ledger/sqlite/sqlite-ledger.ts";
import { defaultSettings } from "./support.ts";

// One of several processes that start at once on a file that does not exist yet.
await using ledger = await openSqliteLedger(
  { ...defaultSettings, synchronous: "full", path: process.argv[2] ?? "" },
  { now: Date.now },
);
const first = await ledger.ensureFirstAccount(10_000_000_000n);
console.log(first?.secret ?? "none");
