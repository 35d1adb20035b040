import { spawnSync } from "node:child_process";

/** Runs a program of this Node in a network namespace that has nothing but loopback, where this machine lets us make one. */
export function runInClosedNetwork(program: readonly string[]): number {
  const ways = [
    ["unshare", "--net"],
    ["unshare", "--net", "--map-root-user"],
  ];
  const up = ["sh", "-c", 'ip link set lo up && exec "$@"', "sh"];
  const way = ways.find(([command = "", ...rest]) => {
    const probe = spawnSync(command, [...rest, ...up, "true"], { stdio: "ignore" });
    return probe.status === 0;
  });
  console.log(
    way === undefined
      ? "No network namespace can be made here: agents run with a proxy that leads nowhere."
      : "In a network namespace with loopback alone.",
  );
  const self = [process.execPath, ...program];
  const [command = "", ...rest] = way === undefined ? self : [...way, ...up, ...self];
  return spawnSync(command, rest, { stdio: "inherit" }).status ?? 1;
}
