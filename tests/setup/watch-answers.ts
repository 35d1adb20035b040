import { afterAll, afterEach } from "vitest";
import { ensureNoWireProblems } from "../wire/watch-answers.ts";

// Runs in every test file: what a service wrote during a test fails that test, and what it wrote later its file.
afterEach(ensureNoWireProblems);
afterAll(ensureNoWireProblems);
