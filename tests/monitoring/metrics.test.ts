import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Agent, request } from "undici";
import { expect, test } from "vitest";
import { parseCredit } from "../../src/admission/price.ts";
import { type Program, startProgram } from "../cli/start-program.ts";
import { makeCertificate } from "../doubles/make-certificate.ts";
import { delta, finish, startScriptedDeployment } from "../doubles/scripted-deployment.ts";
import { rowsOf, readDocument } from "../documents/tables.ts";
import { openOperatorLedger } from "../service/operator-ledger.ts";
import { configOf, formats } from "../service/start-service.ts";
import { promtool, prometheusFolder, startPrometheus } from "./prometheus.ts";

// A service as an operator runs it, what Prometheus says of its metrics, and what deploy/ makes of them.

/** The word at which the deployment refuses a request. */
const refusedWord = "not-this";

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await nextTurn();
}

interface Run extends AsyncDisposable {
  readonly operators: string;
  /** One request of each kind that moves a metric. */
  askOnce(): Promise<void>;
}

async function startRun(): Promise<Run> {
  await using opened = new AsyncDisposableStack();
  const folder = mkdtempSync(join(tmpdir(), "tributary-monitoring-"));
  opened.defer(() => rmSync(folder, { recursive: true, force: true }));
  const deployment = opened.use(await startScriptedDeployment());
  // Two pieces, mostly in two reads.
  deployment.answerBy(({ body }) =>
    body.includes(refusedWord)
      ? [{ type: "headers", status: 400, headers: {} }]
      : [
          delta({ content: "Hello, " }),
          { type: "wait", until: turns(50) },
          delta({ content: "world" }),
          finish("stop"),
        ],
  );
  const made = makeCertificate({ name: "llm.test" });
  const [certificate, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  writeFileSync(certificate, made.cert);
  writeFileSync(keyFile, made.key);
  const agent = new Agent({ connect: { ca: made.cert } });
  opened.defer(() => agent.close());
  const environment = {
    TRIBUTARY_TLS_CERTIFICATE_FILE: certificate,
    TRIBUTARY_TLS_KEY_FILE: keyFile,
    TRIBUTARY_PORT: "0",
    TRIBUTARY_DATA_DIR: folder,
    TRIBUTARY_DEPLOYMENT_URL: deployment.url,
    TRIBUTARY_FIRST_ACCOUNT: "none",
  };
  const program: Program = opened.use(startProgram(["serve", "--json"], folder, environment));
  const [, url = ""] = await program.waitFor(/"url":"(https:[^"]+)".*"listening"/);
  const [, operators = ""] = await program.waitFor(/"address":"(http:[^"]+)"/);
  const ledger = opened.use(await openOperatorLedger(configOf(environment)));
  const newKey = async (credit: string): Promise<string> => {
    const account = await ledger.createAccount("test", parseCredit(credit) ?? 0n);
    return (await ledger.createKey(account.id, "test")).secret;
  };
  const [key, poor] = [await newKey("100"), await newKey("0.000001")];
  const ask = async (path: string, body: object, secret: string): Promise<void> => {
    const headers = { authorization: `Bearer ${secret}`, "content-type": "application/json" };
    const sent = {
      method: "POST",
      headers,
      body: JSON.stringify(body),
      dispatcher: agent,
    } as const;
    await (await request(url + path, sent)).body.text();
  };
  const owned = opened.move();
  return {
    operators,
    async askOnce() {
      for (const { body, path } of formats)
        for (const stream of [true, false]) await ask(path, { ...body, stream }, key);
      const [{ body, path }] = formats;
      await ask(path, body, poor);
      await ask(path, body, "none");
      // An event of the ledger, and a refusal of the deployment.
      await newKey("1");
      const refused = { ...body, messages: [{ role: "user", content: refusedWord }] };
      await ask(path, refused, key);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

const dashboard = JSON.parse(
  readFileSync(join(prometheusFolder, "../grafana/dashboards/tributary.json"), "utf8"),
) as {
  readonly panels: readonly {
    readonly id: number;
    readonly title: string;
    readonly targets?: readonly { readonly expr: string }[];
  }[];
};
const queries = dashboard.panels.flatMap(({ targets = [], title }) =>
  targets.map(({ expr }) => ({ title, expr })),
);

test("promtool is content with the rules, and each alert has a case in which it fires", () => {
  expect(promtool(["check", "config", "prometheus.yml"])).toMatchObject({ ok: true });
  expect(promtool(["check", "rules", "alerts.yml"])).toMatchObject({ ok: true });
  const cases = promtool(["test", "rules", "alerts.test.yml"]);
  expect(cases.ok, cases.words).toBe(true);
  const rules = readFileSync(join(prometheusFolder, "alerts.yml"), "utf8");
  const names = [...rules.matchAll(/- alert: (\w+)/g)].map(([, name = ""]) => name);
  expect(names.length).toBeGreaterThan(15);
  expect(rules.match(/^ +action: "[A-Z`].+\."$/gm)).toHaveLength(names.length);
  const tested = readFileSync(join(prometheusFolder, "alerts.test.yml"), "utf8");
  for (const name of names) {
    expect(tested).toMatch(new RegExp(`alertname: ${name}\\n +exp_alerts:\\n +- exp_labels`));
    expect(tested).toContain(`alertname: ${name}, exp_alerts: []`);
  }
});

test("the dashboard and the alerts name metrics that docs/metrics.md has, and the dashboard has most of them", () => {
  const rows = rowsOf(readDocument("docs/metrics.md"), /^`tributary_/);
  const documented = new Set(rows.map(([name = ""]) => name.slice(1, -1)));
  const named = (text: string): readonly string[] =>
    [...text.matchAll(/\btributary_\w+/g)].map(([name]) =>
      name.replace(/_(?:bucket|sum|count)$/, ""),
    );
  const shown = new Set(queries.flatMap(({ expr }) => named(expr)));
  const alerts = readFileSync(join(prometheusFolder, "alerts.yml"), "utf8");
  for (const name of [...shown, ...named(alerts.replaceAll(/action: .*/g, ""))])
    expect(documented, name).toContain(name);
  expect([...documented].filter((name) => !shown.has(name))).toEqual([]);
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
});

test("Prometheus scrapes a run, finds nothing wrong with its metrics, and every query of the dashboard gives data", async () => {
  await using run = await startRun();
  await run.askOnce();
  const text = await (await fetch(`${run.operators}/metrics`)).text();
  const checked = promtool(["check", "metrics"], text);
  expect(checked, checked.words).toEqual({ ok: true, words: "" });
  expect(text).toMatch(/^process_resident_memory_bytes /m);
  await using prometheus = await startPrometheus([new URL(run.operators).host]);
  await expect.poll(async () => (await prometheus.query("up == 1")).length).toBe(1);
  expect(queries.length).toBeGreaterThan(40);
  for (const { expr, title } of queries) {
    const asked = expr.replaceAll("$__rate_interval", "20s").replaceAll("$instance", ".+");
    await expect
      .poll(
        async () => {
          const found = await prometheus.query(asked);
          const values = found.filter(({ value }) => Number.isFinite(value));
          if (values.length === 0) await run.askOnce();
          return values.length;
        },
        { message: `${title}: ${asked}` },
      )
      .toBeGreaterThan(0);
  }
  const alerts = await prometheus.alerts();
  expect(alerts.length).toBeGreaterThan(15);
  expect(alerts.filter(({ health }) => health !== "ok")).toEqual([]);
});
