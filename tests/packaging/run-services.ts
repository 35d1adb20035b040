import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import {
  delta,
  finish,
  openGate,
  startScriptedDeployment,
} from "../doubles/scripted-deployment.ts";
import { findPostgres } from "../ledger/postgres-server.ts";
import {
  composeFolder,
  type ImageConfig,
  readCompose,
  run,
  startContainer,
  startDaemon,
  until,
} from "./services.ts";

// The services of deploy/compose/compose.yaml, each as the file says, where there is no daemon: the image of this project by
// crun, PostgreSQL and Prometheus by Debian's programs with the files, secrets and settings that their images would get.
// build-image.sh starts it as root in namespaces of network and mounts of its own, so that ports and names are those of the
// file: `run-services.ts PLACE CONFIG FOLDER`, the files of the image, its description, and a folder that goes afterwards.

const [place = "", description = "", folder = ""] = process.argv.slice(2);
/** As the network of a compose file gives each service an address and a name. */
const addresses = {
  tributary: "127.0.0.2",
  postgres: "127.0.0.3",
  prometheus: "127.0.0.4",
  dns: "127.0.0.11",
} as const;
const entry = "/opt/tributary/dist/cli/tributary.cjs";

await using opened = new AsyncDisposableStack();
const image = (
  JSON.parse(readFileSync(description, "utf8")) as {
    readonly Docker: { readonly config: ImageConfig };
  }
).Docker.config;
const deployment = opened.use(await startScriptedDeployment());
const services = readCompose({ TRIBUTARY_DEPLOYMENT_URL: deployment.url });
const { postgres, prometheus, tributary } = services;
if (tributary === undefined || postgres === undefined || prometheus === undefined)
  throw new Error("the compose file has other services");

startNames();
const secrets = writeSecrets();
await startPostgres();
const service = opened.use(
  startContainer({
    name: "tributary",
    place,
    image,
    service: tributary,
    folder,
    secretFile: (name) => join(secrets, name),
  }),
);
const [, ...health] = image.Healthcheck.Test;
await until("the image's health check", () => service.exec(health)).catch((error: unknown) => {
  throw new Error(service.log(), { cause: error });
});
say("healthy", { check: health.slice(-1), as: service.exec(["id", "-u"]).trim() });
checkConfinement();
const key = await ask();
await checkPrometheus();
await checkDrain(key);
process.stdout.write("services ok\n");
process.exit();

function say(what: string, facts: object): void {
  process.stdout.write(`${JSON.stringify({ what, ...facts })}\n`);
}

function check(isRight: boolean, what: string): void {
  if (!isRight) throw new Error(`${what}\n${service.log()}`);
}

/** Each service has its name, by a server of names as the one of a compose network. */
function startNames(): void {
  const records = Object.entries(addresses).map(
    ([name, address]) => `--host-record=${name},${address}`,
  );
  const settings = ["--keep-in-foreground", "--no-resolv", "--no-hosts", "--user=root"];
  const where = [`--listen-address=${addresses.dns}`, "--bind-interfaces", "--pid-file="];
  opened.use(startDaemon("dnsmasq", [...settings, ...where, ...records]));
  const file = join(folder, "resolv.conf");
  writeFileSync(file, `nameserver ${addresses.dns}\n`);
  run("mount", ["--bind", file, "/etc/resolv.conf"]);
}

/** As docs/deployment.md makes them. */
function writeSecrets(): string {
  const made = join(folder, "secrets");
  mkdirSync(made, { mode: 0o711 });
  const password = run("openssl", ["rand", "-hex", "24"]);
  const files = {
    "postgres-password": password,
    "database-url": `postgres://tributary:${password.trim()}@postgres:5432/tributary`,
  };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(made, name), text);
  return made;
}

/** What the image of PostgreSQL does with its variables at its first start. */
async function startPostgres(): Promise<void> {
  const program = (name: string): string => join(findPostgres(name) ?? "", name);
  const { POSTGRES_DB: database = "", POSTGRES_USER: user = "" } = postgres?.environment ?? {};
  const password = `/run/secrets/${postgres?.secrets?.[0] ?? ""}`;
  check(postgres?.environment?.["POSTGRES_PASSWORD_FILE"] === password, "the password's file");
  const [uid, gid] = ["-u", "-g"].map((word) => Number(run("id", [word, "postgres"])));
  const data = join(folder, "volume-postgres");
  mkdirSync(data);
  run("chown", ["postgres:postgres", data]);
  const as = (...words: readonly string[]): string =>
    run("setpriv", ["--reuid=postgres", "--regid=postgres", "--clear-groups", ...words]);
  const own = join(folder, "secrets/postgres-password");
  as(program("initdb"), "-D", data, "-U", user, "-A", "scram-sha-256", `--pwfile=${own}`);
  const settings = ["-D", data, "-h", addresses.postgres, "-k", data, "-c", "fsync=off"];
  opened.use(startDaemon(program("postgres"), settings, { uid: uid ?? 0, gid: gid ?? 0 }));
  const [, ready = "", ...words] = postgres?.healthcheck?.test ?? [];
  await until("the health check of PostgreSQL", () =>
    run(program(ready), ["--host=postgres", ...words]),
  );
  const url = new URL(readFileSync(join(folder, "secrets/database-url"), "utf8"));
  url.pathname = "/postgres";
  run(program("psql"), [
    "--quiet",
    `--dbname=${url.href}`,
    `--command=create database ${database}`,
  ]);
}

/** As the file says and the kernel shows: the first process of its own, nothing writable but a volume and /tmp, no rights. */
function checkConfinement(): void {
  const status = service.exec(["cat", "/proc/1/status"]);
  check(/^Name:\tnode|^Name:\tMainThread/m.test(status), "the first process is not the service");
  check(/^CapEff:\t0+$/m.test(status) && /^CapBnd:\t0+$/m.test(status), "it has capabilities");
  check(/^NoNewPrivs:\t1$/m.test(status), "it may get privileges");
  check(/^Uid:\t10001\t10001\t/m.test(status), "it runs as another user");
  const write = (path: string): string =>
    service
      .exec([
        "node",
        "-e",
        `try { fs.writeFileSync(${JSON.stringify(path)}, "") } catch (e) { console.log(e.code) }`,
      ])
      .trim();
  const written = ["/opt/tributary/x", "/etc/x", "/tmp/x", "/var/lib/tributary/x"].map(write);
  check(written.join() === "EROFS,EROFS,,", `what can be written: ${written.join()}`);
  say("confined", { written });
}

/** What a stranger does first: docs/deployment.md, then an SDK. */
async function ask(): Promise<string> {
  const command = (...words: readonly string[]): Readonly<Record<string, unknown>> =>
    JSON.parse(service.exec(["node", entry, ...words, "--json"])) as Record<string, unknown>;
  const account = command("account", "create", "first", "--credit", "10");
  const made = command("key", "create", String(account["id"]));
  const secret = String(made["secret"] ?? made["key"]);
  const model = "service-llm";
  const messages = [{ role: "user" as const, content: "Hi" }];
  const base = `http://tributary:8080`;
  const openai = new OpenAI({ apiKey: secret, baseURL: `${base}/v1`, maxRetries: 0 });
  const { choices, usage } = await openai.chat.completions.create({ model, messages });
  check(choices[0]?.message.content === "Hello from the deployment.", "the answer is another one");
  const response = await openai.responses.create({ model, input: "Hi", stream: false });
  const anthropic = new Anthropic({ apiKey: secret, baseURL: base, maxRetries: 0 });
  const message = await anthropic.messages
    .stream({ model, messages, max_tokens: 100 })
    .finalMessage();
  check(message.content[0]?.type === "text", "Messages has no text");
  say("asked", {
    chat: usage?.completion_tokens,
    responses: response.status,
    messages: message.stop_reason,
  });
  const shown = command("account", "show", String(account["id"]));
  say("account", { balance: shown["balance"], held: shown["held"] });
  return secret;
}

/** Debian's Prometheus with the files that its image would have at /etc/prometheus, started as that image starts it. */
async function checkPrometheus(): Promise<void> {
  const [rules = "", store = ""] = prometheus?.volumes ?? [];
  check(
    rules === "../prometheus:/etc/prometheus:ro" && store === "prometheus:/prometheus",
    "volumes",
  );
  run("mkdir", ["-p", "/etc/prometheus"]);
  run("mount", ["--bind", join(composeFolder, "../prometheus"), "/etc/prometheus"]);
  const program = opened.use(
    startDaemon("prometheus", [
      "--config.file=/etc/prometheus/prometheus.yml",
      `--storage.tsdb.path=${join(folder, "volume-prometheus")}`,
      `--web.listen-address=${addresses.prometheus}:9090`,
    ]),
  );
  const source = readFileSync(
    join(composeFolder, "../grafana/provisioning/datasources/prometheus.yml"),
    "utf8",
  );
  const [, base = ""] = /url: (\S+)/.exec(source) ?? [];
  const query = async (
    text: string,
  ): Promise<readonly { readonly value: readonly [number, string] }[]> => {
    const answer = await fetch(`${base}/api/v1/query?query=${encodeURIComponent(text)}`);
    return ((await answer.json()) as { data: { result: [] } }).data.result;
  };
  const found = await until("Prometheus finds the service by its name", async () => {
    const up = await query('up{job="tributary"} == 1');
    const counted = await query("sum(tributary_generations_total) >= 3");
    return up.length > 0 && counted.length > 0 ? { up: up.length, counted } : null;
  }).catch((error: unknown) => {
    throw new Error(program.log(), { cause: error });
  });
  await until("each of its rules is evaluated", async () => {
    const text = await (await fetch(`${base}/api/v1/rules`)).text();
    const healths = [...text.matchAll(/"health":"(\w+)"/g)].map(([, health]) => health);
    return healths.length > 15 && healths.every((health) => health === "ok");
  });
  say("scraped", { at: base, targets: found.up, generations: found.counted[0]?.value[1] });
}

/** The image's own stop signal: what runs goes to its end, and the process ends in order. */
async function checkDrain(key: string): Promise<void> {
  const gate = openGate();
  deployment.answerNext(
    delta({ content: "begun " }),
    gate.step,
    delta({ content: "and ended" }),
    finish("stop"),
  );
  const openai = new OpenAI({ apiKey: key, baseURL: "http://127.0.0.1:8080/v1", maxRetries: 0 });
  const stream = await openai.chat.completions.create({
    model: "service-llm",
    messages: [{ role: "user", content: "Hi" }],
    stream: true,
  });
  let text = "";
  for await (const { choices } of stream) {
    const piece = choices[0]?.delta.content ?? "";
    if (text === "" && piece !== "") {
      service.signal(image.StopSignal);
      await until(
        "it is not ready",
        async () => (await fetch("http://127.0.0.1:8080/readyz")).status === 503,
      );
      gate.open();
    }
    text += piece;
  }
  check(text === "begun and ended", `the stream that ran was cut: ${text}`);
  const code = await service.exited;
  check(code === 0 && service.log().includes('"event":"stopped"'), `it ended with ${String(code)}`);
  say("drained", { by: image.StopSignal, code });
}
