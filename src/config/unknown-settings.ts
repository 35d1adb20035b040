import { type Environment, type VariableName, variables } from "./environment.ts";
import { nearestName } from "./nearest-name.ts";

/** A variable that begins as a setting does and is none. */
export interface UnknownSetting {
  readonly name: string;
  /** The setting that was meant; null: it looks like none. */
  readonly meant: VariableName | null;
}

const prefix = "TRIBUTARY_";

/** Variables that begin with `TRIBUTARY_`, have a value and are no setting; those that Kubernetes sets are left out. */
export function findUnknownSettings(environment: Environment): readonly UnknownSetting[] {
  return Object.entries(environment)
    .filter(
      ([name, value]) =>
        name.startsWith(prefix) && !Object.hasOwn(variables, name) && (value ?? "").trim() !== "",
    )
    .filter(([name, value]) => !isServiceLink(name, value ?? ""))
    .map(([name]) => ({ name, meant: findMeant(name.slice(prefix.length)) }))
    .toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

/** Whether a value is what Kubernetes tells every pod of a Service, under a name made from that Service's. */
export function isServiceAddress(value: string): boolean {
  return /^(?:tcp|udp|sctp):\/\//.test(value);
}

function isServiceLink(name: string, value: string): boolean {
  return (
    isServiceAddress(value) ||
    /_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:ADDR|PORT|PROTO))?)$/.test(
      name,
    )
  );
}

/** What else the database and the deployment are called. */
const otherWords: Readonly<Record<string, string>> = {
  DB: "DATABASE",
  LEDGER: "DATABASE",
  PG: "DATABASE",
  POSTGRES: "DATABASE",
  POSTGRESQL: "DATABASE",
  BACKEND: "DEPLOYMENT",
  ENGINE: "DEPLOYMENT",
  UPSTREAM: "DEPLOYMENT",
};

/** Words that say nothing of which setting is meant. */
const commonWords: ReadonlySet<string> = new Set(
  "ACCOUNT API DIR FILE FIRST KEY MAX MS PER SECONDS URL".split(" "),
);

/** Where these two are decides whose money is spent and who reads the prompts: any name with them is meant for them. */
const weightyWords = ["DATABASE", "DEPLOYMENT"] as const;

function findMeant(end: string): VariableName | null {
  const words = end.split("_").map((word) => otherWords[word] ?? word);
  const weighty = weightyWords.find((word) => words.includes(word));
  if (weighty === undefined) return findName(words, prefix);
  const others = words.filter((word) => word !== weighty);
  return findName(others, `${prefix}${weighty}_`) ?? `${prefix}${weighty}_URL`;
}

/** The setting whose name begins so and goes on with these words, or nearly so. */
function findName(words: readonly string[], beginning: string): VariableName | null {
  const known = knownNames.filter((name) => name.startsWith(beginning));
  const ends = known.map((name) => name.slice(beginning.length));
  const found = sameWords(words, ends, beginning === prefix) ?? nearestName(words.join("_"), ends);
  return found === null ? null : (known[ends.indexOf(found)] ?? null);
}

const knownNames = Object.keys(variables) as readonly VariableName[];

/** The known name that has all of these words or is all in them, with the fewest other words. */
function sameWords(
  words: readonly string[],
  ends: readonly string[],
  anywhere: boolean,
): string | null {
  const candidates = ends.flatMap((end) => {
    const others = end.split("_");
    const shared = words.filter((word) => others.includes(word));
    const within = shared.length === Math.min(words.length, others.length);
    const telling = shared.some((word) => !anywhere || !commonWords.has(word));
    return within && telling ? [{ end, more: words.length + others.length }] : [];
  });
  return candidates.toSorted((one, other) => one.more - other.more)[0]?.end ?? null;
}
