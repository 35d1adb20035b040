import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { workerData } from "node:worker_threads";
import { request } from "undici";
import type { ProbeOrder } from "./watch-process.ts";

// The thread that asks for `watchProcess`: the fuzzer makes thousands of bodies on its own event loop, and while an answer
// waits there to be read, the service computes on for others.

const probeEveryMs = 20;
const pageBytes = 4_096;

const { figures, pid, url } = workerData as ProbeOrder;

for (;;) {
  const before = await mainThreadMs();
  const answer = await request(`${url}/healthz`);
  await answer.body.dump();
  figures[0] = Math.max(figures[0] ?? 0, (await mainThreadMs()) - before);
  figures[1] = Math.max(figures[1] ?? 0, await residentMiB());
  await sleep(probeEveryMs);
}

async function mainThreadMs(): Promise<number> {
  const text = await readFile(`/proc/${String(pid)}/task/${String(pid)}/schedstat`, "utf8");
  return Number(text.split(" ")[0]) / 1e6;
}

async function residentMiB(): Promise<number> {
  const text = await readFile(`/proc/${String(pid)}/statm`, "utf8");
  return (Number(text.split(" ")[1]) * pageBytes) / 2 ** 20;
}
