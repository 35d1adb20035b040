import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { delta, type Step } from "../doubles/scripted-deployment.ts";
import { occupy } from "../service/occupy.ts";
import type { Agent } from "./agents.ts";
import { AnswerScript, freshWord, noteText, TaskScript } from "./script.ts";
import { type Ended, type Outcome, runTrial, smoothProblems } from "./trial.ts";

/** What an agent is tried at. */
export interface Capability {
  readonly name: string;
  /** Whether the short lane has it. */
  readonly short: boolean;
  readonly run: (agent: Agent, programs: string) => Promise<Outcome>;
}

/** A file is read, a command run, the file edited, the word in it told. */
async function task(agent: Agent, programs: string): Promise<Outcome> {
  const word = freshWord();
  return runTrial(agent, programs, {
    async prepare(_service, { work }) {
      const path = join(work, "note.txt");
      await writeFile(path, noteText(word, false));
      return new TaskScript({ asksForTitle: agent.asksForTitle, path });
    },
    async check(ended) {
      const note = await readFile(join(ended.workplace.work, "note.txt"), "utf8");
      return [
        ...smoothProblems(ended),
        ...(ended.script.main.length === 4 ? [] : ["the script was not played to its end"]),
        ...(note === noteText(word, true) ? [] : [`note.txt holds ${JSON.stringify(note)}`]),
        ...shows(ended, word),
      ];
    },
  });
}

/** The deployment says nothing for a while before its first token; keepalives reach the agent. */
function silence(silenceMs: number, environment: Readonly<Record<string, string>>) {
  return (agent: Agent, programs: string): Promise<Outcome> => {
    const word = freshWord();
    return runTrial(agent, programs, {
      environment,
      prepare: async () =>
        new AnswerScript({
          asksForTitle: agent.asksForTitle,
          word,
          answersMax: 1,
          first: (answer) => [{ type: "wait", until: sleep(silenceMs) }, ...answer],
        }),
      check: (ended) => [...smoothProblems(ended), ...shows(ended, word)],
    });
  };
}

/** What each agent does on a 402, as it was measured: how often it asks, and what a user reads. */
const outOfCredit: Readonly<
  Record<string, { readonly requestsMax: number; readonly shows: string }>
> = {
  "Claude Code": { requestsMax: 1, shows: "402" },
  Codex: { requestsMax: 6, shows: "402 Payment Required" },
  opencode: { requestsMax: 2, shows: "credit" },
};

/** The account's credit pays for no answer: the agent says so and ends, nothing reaches the deployment. */
async function noCredit(agent: Agent, programs: string): Promise<Outcome> {
  const { requestsMax, shows: words } = outOfCredit[agent.name] ?? { requestsMax: 0, shows: "" };
  return runTrial(agent, programs, {
    credit: "0.000001",
    prepare: async () =>
      new AnswerScript({ asksForTitle: agent.asksForTitle, word: freshWord(), answersMax: 0 }),
    check: (ended) => {
      const posts = ended.requests.filter(({ method }) => method === "POST");
      return [
        ...posts.filter(({ status }) => status !== 402).map(({ status }) => `a ${String(status)}`),
        ...(posts.length >= 1 && posts.length <= requestsMax
          ? []
          : [`${String(posts.length)} requests, at most ${String(requestsMax)} expected`]),
        ...shows(ended, words),
      ];
    },
  });
}

/** All of the account's slots are taken at first: the agent waits as long as `retry-after` says, then works. */
async function tooMany(agent: Agent, programs: string): Promise<Outcome> {
  const word = freshWord();
  const { asksForTitle } = agent;
  return runTrial(agent, programs, {
    async prepare(service) {
      // Another key of the account, so that its requests are not taken for the agent's.
      const { secret } = await service.ledger.createKey(service.accountId, "others");
      const held = await occupy(service, [secret, secret, secret, secret]);
      // A title may be refused first, so there the slots stay taken until the work itself was refused too.
      const heldMs = asksForTitle ? 3_000 : 0;
      void freeAfterFirst429(
        () => service.logLines,
        heldMs,
        () => held.open(),
      );
      return new AnswerScript({ asksForTitle, word, answersMax: 1 });
    },
    check: (ended) => {
      const refused = ended.requests.filter(({ status }) => status === 429);
      const answered = ended.requests.findLast(({ status }) => status === 200);
      const waitedMs = (answered?.endedAtMs ?? 0) - (refused[0]?.endedAtMs ?? 0);
      const [least, most] = asksForTitle ? [2, 4] : [1, 1];
      return [
        ...(refused.length >= least && refused.length <= most
          ? []
          : [`${String(refused.length)} times 429, expected ${String(least)} to ${String(most)}`]),
        ...(waitedMs >= 1_950 ? [] : [`repeated after ${String(waitedMs)} ms, retry-after was 2`]),
        ...(ended.result.exitCode === 0 ? [] : [`exit ${String(ended.result.exitCode)}`]),
        ...shows(ended, word),
      ];
    },
  });
}

async function freeAfterFirst429(
  lines: () => readonly string[],
  heldMs: number,
  open: () => void,
): Promise<void> {
  for (let tries = 0; tries < 300; tries += 1) {
    if (lines().some((line) => line.includes('"status":429'))) break;
    await sleep(100);
  }
  await sleep(heldMs);
  open();
}

/** The deployment is lost in the middle of its first answer: the agent repeats the request, and only one is paid. */
async function midStream(agent: Agent, programs: string): Promise<Outcome> {
  const word = freshWord();
  const lost: readonly Step[] = [
    delta({ role: "assistant", content: "" }),
    delta({ content: "The word " }),
    { type: "wait", until: sleep(300) },
    { type: "reset" },
  ];
  return runTrial(agent, programs, {
    prepare: async () =>
      new AnswerScript({
        asksForTitle: agent.asksForTitle,
        word,
        answersMax: 2,
        first: () => lost,
      }),
    check: (ended) => [
      ...(ended.requests.filter(({ failureCode }) => failureCode === "deployment_failed").length ===
      1
        ? []
        : ["not exactly one request failed"]),
      ...(ended.script.main.length === 2 ? [] : [`${String(ended.script.main.length)} requests`]),
      ...(ended.result.exitCode === 0 ? [] : [`exit ${String(ended.result.exitCode)}`]),
      ...shows(ended, word),
    ],
  });
}

function shows({ result }: Ended, words: string): readonly string[] {
  return `${result.stdout}\n${result.stderr}`.includes(words) ? [] : [`did not show "${words}"`];
}

/** The columns of the table. */
export const capabilities: readonly Capability[] = [
  { name: "task", short: true, run: task },
  {
    name: "4 s of silence",
    short: true,
    run: silence(4_000, { TRIBUTARY_KEEPALIVE_MS: "500" }),
  },
  { name: "25 s of silence", short: false, run: silence(25_000, {}) },
  { name: "402", short: false, run: noCredit },
  { name: "429", short: false, run: tooMany },
  { name: "lost in mid-stream", short: false, run: midStream },
];
