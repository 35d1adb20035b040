import type { ComponentChildren } from "preact";
import { get } from "../../api/client.ts";
import type { LiveNow, Verification } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import { Figure, Figures, PageHead, Section } from "../../components/page.tsx";
import { Empty, Loaded } from "../../components/state.tsx";
import { Time } from "../../components/text.tsx";
import { liveLoad, useLive } from "../../live/use-live.ts";
import { linkTo } from "../../place.ts";
import { UsageOverview } from "../../usage/usage-overview.tsx";
import { countText, durationText } from "../../words.ts";
import { TopAccounts } from "./top-accounts.tsx";

/** What runs, and what was used over a time. */
export function OverviewPage({ query }: { readonly query: URLSearchParams }) {
  const load = liveLoad(useLive());
  return (
    <>
      <PageHead title="Overview" />
      <Section title="Now">
        <Loaded load={load} what="what happens now">
          {({ now }) => now !== null && <NowFigures now={now} />}
        </Loaded>
      </Section>
      {/* What happens now would move it. */}
      {!load.loading && (
        <UsageOverview
          path="/usage"
          place={{ path: [] }}
          query={query}
          beside={(range) => <TopAccounts range={range} />}
          empty={
            <Empty title="No request ended in this time">
              <p>
                Ask the model something in the <a href={linkTo(["playground"])}>playground</a>, or
                give an <a href={linkTo(["accounts"])}>account</a> a key and have a client send a
                request.
              </p>
            </Empty>
          }
        />
      )}
    </>
  );
}

function NowFigures({ now }: { readonly now: LiveNow }) {
  const { deployment, failures, first_output: first, replicas, since } = now;
  const rate = now.output_tokens_per_second;
  return (
    <Figures>
      <Figure name="Running requests" href={linkTo(["running"])} note={replicasText(replicas)}>
        <span class="number">{countText(now.running)}</span>
      </Figure>
      <Figure name="Tokens out a second" note="over the last 5 s">
        <span class="number">{rate === null ? "–" : countText(rate)}</span>
      </Figure>
      <Figure
        name="Time to first output"
        note={
          first.requests === 0
            ? "no request ended in the last 5 minutes"
            : `p50 and p95 of ${countText(first.requests)} in the last 5 minutes`
        }
      >
        <span class="number">
          {first.p50_ms === null || first.p95_ms === null
            ? "–"
            : `${durationText(first.p50_ms)} / ${durationText(first.p95_ms)}`}
        </span>
      </Figure>
      <Figure
        name="Refused or failed"
        href={linkTo(["refused"])}
        note={
          <>
            {codesText(failures)} since <Time at={since} />
          </>
        }
      >
        <span class="number">{countText(failures.reduce((sum, one) => sum + one.count, 0))}</span>
      </Figure>
      <Figure
        name="Deployment"
        href={linkTo(["settings"])}
        note={deployment.ready ? deployment.model : Object.values(deployment.reasons).join("; ")}
      >
        {deployment.ready ? "ready" : "not ready"}
      </Figure>
      <LedgerFigure />
    </Figures>
  );
}

const verifyEveryMs = 30_000;

/** Whether the money is right, as the last verification of the ledger found. */
function LedgerFigure() {
  const { data, error } = useLoad(
    "verify",
    (signal) => get<Verification>("/verify", { signal }),
    verifyEveryMs,
  );
  const [words, note] =
    data === null ? [error === null ? "…" : "not known", "…"] : ledgerWords(data);
  return (
    <Figure name="Ledger" href={linkTo(["settings"])} note={note}>
      {words}
    </Figure>
  );
}

function ledgerWords({
  ended_at: ended,
  report,
  state,
}: Verification): readonly [words: string, note: ComponentChildren] {
  if (state === "never")
    return ["not verified", "since this replica began: begin it in the settings"];
  if (state === "running") return ["is verified …", "all entries are added up again"];
  if (report === null || ended === null) return ["not readable", "the log has the cause"];
  const when = (
    <>
      {countText(report.entries)} entries, <Time at={ended} ago />
    </>
  );
  return [report.ok ? "right" : "wrong", when];
}

function replicasText(replicas: LiveNow["replicas"]): string {
  const ready = replicas.filter((one) => one.ready && !one.draining).length;
  return replicas.length === 1
    ? "on one replica"
    : `on ${countText(replicas.length)} replicas, ${countText(ready)} ready; the figures beside are of this one`;
}

/** The most frequent codes with how often each came. */
function codesText(failures: LiveNow["failures"]): string {
  if (failures.length === 0) return "none";
  const shown = failures.slice(0, 3).map(({ code, count }) => `${code} ${countText(count)}`);
  return [...shown, ...(failures.length > 3 ? ["others"] : [])].join(", ");
}
