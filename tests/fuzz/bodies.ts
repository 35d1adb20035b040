import { caseFiles, type JsonRecord, readJson } from "../cases/files.ts";
import { mutate, type Mutation } from "../properties/mutate-json.ts";
import { allRecordings } from "../recordings/recording.ts";
import { mutateBytes } from "./mutate-bytes.ts";
import { problemOfAnswer } from "./problem-of-answer.ts";
import { count, pick, repeat, type Stage, type Tally } from "./stage.ts";

interface Seed {
  readonly path: string;
  readonly body: JsonRecord;
}

const pathOf = {
  "chat-completions": "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
} as const;

const kinds = ["replace", "remove", "duplicate", "add", "move", "stretch"] as const;
const values: readonly unknown[] = [
  null,
  true,
  -1,
  0,
  1e308,
  1.5,
  "",
  "a".repeat(5_000),
  "\ud800",
  "__proto__",
  [],
  {},
  [[]],
  { type: "text", text: "x" },
  { role: "system", content: "x" },
  "json_schema",
];

/** Sends real requests of every format with changes of their values, of their bytes, or of both. */
export async function sendMutatedBodies(runs: number, stage: Stage): Promise<Tally> {
  const { random } = stage;
  const seeds = readSeeds();
  const tally: Tally = new Map();
  await repeat(runs, 16, async (index) => {
    const seed = pick(seeds, random);
    const ofMessage = seed.path === pathOf.messages;
    const path = ofMessage && random() < 0.25 ? `${seed.path}/count_tokens` : seed.path;
    const body = bodyOf(seed.body, random);
    const answer = await stage.pool.request({
      method: "POST",
      path,
      headers: { "content-type": "application/json", authorization: `Bearer ${stage.key}` },
      body,
    });
    const text = await answer.body.text();
    count(tally, String(answer.statusCode));
    const problem =
      answer.statusCode >= 500
        ? `status ${String(answer.statusCode)}: ${text.slice(0, 200)}`
        : problemOfAnswer(path, answer.statusCode, { headers: answer.headers, text });
    if (problem !== null)
      stage.report(
        `body ${String(index)} to ${path}: ${problem}; sent ${JSON.stringify(body.toString("latin1").slice(0, 2_000))}`,
      );
  });
  return tally;
}

function readSeeds(): readonly Seed[] {
  const cases = caseFiles("requests").flatMap((file) =>
    file.format === null || file.kind === "conversation"
      ? []
      : [{ path: pathOf[file.format], body: readJson(file) }],
  );
  const recorded = allRecordings().flatMap(({ calls }) =>
    calls.flatMap(({ path, body }) => {
      const known = Object.values(pathOf).find((one) => path.split("?", 1)[0] === one);
      return body === null || known === undefined ? [] : [{ path: known, body }];
    }),
  );
  return [...cases, ...recorded];
}

function bodyOf(body: JsonRecord, random: () => number): Buffer {
  let value: unknown = body;
  if (random() < 0.7)
    for (let steps = Math.floor(random() * 4); steps > 0; steps -= 1)
      value = mutate(value, mutation(random));
  const bytes = Buffer.from(JSON.stringify(value) ?? "");
  return random() < 0.4 ? Buffer.from(mutateBytes(bytes, random)) : bytes;
}

function mutation(random: () => number): Mutation {
  return {
    kind: pick(kinds, random),
    place: Math.floor(random() * 1e9),
    value: structuredClone(pick(values, random)),
  };
}
