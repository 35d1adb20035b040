import { readdirSync, readFileSync } from "node:fs";

/** A process and all that it has started. */
export function processTree(processId: number): readonly number[] {
  const found = [processId];
  for (const id of found) {
    for (const thread of list(`/proc/${String(id)}/task`))
      found.push(
        ...read(`/proc/${String(id)}/task/${thread}/children`)
          .split(" ")
          .filter(Boolean)
          .map(Number),
      );
  }
  return found;
}

/** CPU seconds that the processes have used until now, with those of the children that they have seen end. */
export function cpuSeconds(processIds: readonly number[]): number {
  let seconds = 0;
  for (const id of processIds) {
    const fields =
      read(`/proc/${String(id)}/stat`)
        .split(") ")[1]
        ?.split(" ") ?? [];
    const [own = 0, ownSystem = 0, ended = 0, endedSystem = 0] = fields.slice(11, 15).map(Number);
    const ticks = own + ownSystem;
    // The first knows of threads that have ended, in hundredths; the second is exact for those that run.
    seconds += Math.max(ticks / 100, runSeconds(id)) + (ended + endedSystem) / 100;
  }
  return seconds;
}

function runSeconds(id: number): number {
  const folder = `/proc/${String(id)}/task`;
  let nanos = 0;
  for (const thread of list(folder))
    nanos += Number(read(`${folder}/${thread}/schedstat`).split(" ")[0] ?? 0);
  return nanos / 1e9;
}

/** Resident memory of the processes, MiB. */
export function residentMebibytes(processIds: readonly number[]): number {
  let kibibytes = 0;
  for (const id of processIds)
    kibibytes += Number(/VmRSS:\s+(\d+)/.exec(read(`/proc/${String(id)}/status`))?.[1] ?? 0);
  return kibibytes / 1_024;
}

/** Empty where the process or thread has ended meanwhile. */
function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

function list(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
