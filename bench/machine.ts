import { spawnSync } from "node:child_process";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import type { Arm } from "./arms.ts";
import { markdown } from "./markdown.ts";

/** Where, when and with what was measured, and what each arm does for a request. */
export function describeRun(
  run: { readonly arms: readonly Arm[]; readonly missing: readonly string[] },
  times: {
    readonly rounds: number;
    readonly seconds: number;
    readonly minutes: number;
    readonly startedAt: Date;
  },
): string {
  const [processor] = cpus();
  const load = loadavg().map((average) => average.toFixed(1));
  const minutes = passedMinutes(times.startedAt);
  const lines = [
    `${times.startedAt.toISOString().slice(0, 16)}, ${minutes.toFixed(0)} minutes, load average afterwards ${load.join(", ")}`,
    `${String(cpus().length)} cores, ${processor?.model.trim() ?? "unknown"}, ${String(Math.round(totalmem() / 2 ** 30))} GiB, ${type()} ${release().split("-")[0] ?? ""}`,
    `Node ${process.version}, ${firstLineOf("/usr/sbin/nginx", ["-v"])}`,
    `npm run bench -- ${process.argv.slice(2).join(" ")}`,
    `${String(times.rounds)} rounds in ${String(times.minutes)} minutes at most, windows of ${String(times.seconds)} s; medians (ranges)`,
    ...run.missing.map((one) => `left out: ${one}`),
  ];
  const table = run.arms
    .filter(({ does }) => does !== undefined)
    .map(({ does, name, formats }) => ({
      arm: name,
      "for each request": does ?? "",
      formats: formats?.map((format) => format.name).join(", ") ?? "chat",
    }));
  return `${lines.join("\n")}\n\n${markdown(table)}`;
}

/** Since then, fractions included. */
export function passedMinutes(startedAt: Date): number {
  return (Date.now() - startedAt.getTime()) / 60_000;
}

/** nginx tells its version where errors go. */
function firstLineOf(program: string, values: readonly string[]): string {
  try {
    const { stderr, stdout } = spawnSync(program, values, { encoding: "utf8" });
    return (stdout || stderr).split("\n")[0] ?? "";
  } catch {
    return `no ${program}`;
  }
}
