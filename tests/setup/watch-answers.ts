import { enableCompileCache } from "node:module";
import { afterAll, afterEach } from "vitest";
import { ensureNoWireProblems } from "../wire/watch-answers.ts";

// Runs in every test file. Each is a process of its own and would compile the same packages again.
enableCompileCache();

// What a service wrote during a test fails that test, and what it wrote later its file.
afterEach(ensureNoWireProblems);
afterAll(ensureNoWireProblems);
