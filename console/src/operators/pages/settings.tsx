import { useState } from "preact/hooks";
import { get, send } from "../../api/client.ts";
import type { Deployment, Replica, Setting, Status, Verification } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import { Button } from "../../components/button.tsx";
import { FormDialog } from "../../components/form-dialog.tsx";
import { Facts, PageHead, Section } from "../../components/page.tsx";
import { Loaded } from "../../components/state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Badge, Time, withCode } from "../../components/text.tsx";
import { say } from "../../components/toast.tsx";
import { countText } from "../../words.ts";
import { useMay } from "../session.ts";

const everyMs = 5_000;

/** The service itself: its deployment, replicas, ledger and settings. */
export function SettingsPage() {
  return (
    <>
      <PageHead title="Settings" />
      <DeploymentSection />
      <ReplicaSection />
      <VerifySection />
      <SettingTable />
    </>
  );
}

function DeploymentSection() {
  const load = useLoad(
    "deployment",
    (signal) => get<Deployment>("/deployment", { signal }),
    everyMs,
  );
  return (
    <Section title="Deployment">
      <Loaded load={load} what="the deployment">
        {(deployment) => (
          <>
            <p>
              <Readiness of={deployment} /> {deployment.model}
            </p>
            <Facts
              rows={[
                ["Kind", deployment.kind],
                ["Address", deployment.url ?? "in this service"],
                [
                  "Context",
                  deployment.context_tokens === null
                    ? "not known"
                    : `${countText(deployment.context_tokens)} tokens`,
                ],
                ["Tools", deployment.takes_tools ? "accepted" : "not accepted"],
              ]}
            />
            <p class="hint">
              <code>npm run -s tributary -- doctor</code> tries it with a tiny generation in each
              format, and says what to do about what is wrong.
            </p>
          </>
        )}
      </Loaded>
    </Section>
  );
}

/** Whether it would serve a request now, and why not. */
function Readiness({ of }: { readonly of: Pick<Replica, "ready" | "reasons"> }) {
  if (of.ready) return <Badge tone="good">ready</Badge>;
  return (
    <>
      <Badge tone="bad">not ready</Badge>{" "}
      {Object.entries(of.reasons)
        .map(([part, why]) => `${part}: ${why}`)
        .join("; ")}
    </>
  );
}

function ReplicaSection() {
  const load = useLoad("status", (signal) => get<Status>("/status", { signal }), everyMs);
  const [draining, setDraining] = useState<Replica | null>(null);
  const mayDrain = useMay("owner");
  const columns = (asked: string): readonly Column<Replica>[] => [
    {
      head: "Replica",
      names: true,
      cell: ({ host, id, process }) => (
        <>
          {host} {process} <code class="quiet">{id}</code>
          {id === asked && <span class="quiet"> (this one)</span>}
        </>
      ),
    },
    { head: "Version", cell: ({ version }) => version },
    {
      head: "Status",
      cell: (replica) =>
        replica.draining || replica.drain_asked_by !== null ? (
          <Badge tone="warn">draining</Badge>
        ) : (
          <Readiness of={replica} />
        ),
    },
    { head: "Running", numeric: true, cell: ({ running }) => countText(running) },
    { head: "Since", cell: ({ started_at: at }) => <Time at={at} /> },
    {
      head: "Settings",
      cell: ({ differs }) =>
        differs.length === 0 ? (
          "the same"
        ) : (
          <Badge tone="warn">{`${differs.join(", ")} differ`}</Badge>
        ),
    },
    {
      head: "",
      cell: (replica) =>
        mayDrain && !replica.draining && replica.drain_asked_by === null ? (
          <div class="row-actions">
            <Button
              kind="quiet-danger"
              label={`Drain the replica ${replica.id}`}
              onClick={() => setDraining(replica)}
            >
              Drain
            </Button>
          </div>
        ) : null,
    },
  ];
  return (
    <Section title="Replicas" hint="Processes that serve this ledger, seen in the last minute.">
      <Loaded load={load} what="the replicas">
        {({ replica, replicas }) => (
          <Table
            caption="Replicas"
            columns={columns(replica)}
            rows={replicas}
            idOf={({ id }) => id}
          />
        )}
      </Loaded>
      {draining !== null && (
        <FormDialog
          title="Drain the replica?"
          action="Drain it"
          danger
          onClose={() => setDraining(null)}
          run={async () => {
            await send("POST", `/replicas/${draining.id}/drain`);
            say("It drains");
            void load.reload();
          }}
        >
          <p>
            It takes no new requests, lets those that run end, and then its process ends. If it is
            the only one, the service and this console end with it.
          </p>
        </FormDialog>
      )}
    </Section>
  );
}

function VerifySection() {
  const load = useLoad("verify", (signal) => get<Verification>("/verify", { signal }), everyMs);
  const verify = async (): Promise<void> => {
    await send("POST", "/verify").catch(() => say("It could not be begun.", "bad"));
    void load.reload();
  };
  return (
    <Section
      title="Ledger"
      hint="Adds everything up again and recomputes every chain, beside what runs."
      actions={
        <Button busy={load.data?.state === "running"} onClick={() => void verify()}>
          Verify
        </Button>
      }
    >
      <Loaded load={load} what="the last verification">
        {(verification) => <VerificationView verification={verification} />}
      </Loaded>
    </Section>
  );
}

function VerificationView({ verification }: { readonly verification: Verification }) {
  const { ended_at: ended, report, state } = verification;
  if (state === "never") return <p class="quiet">Not verified since this process began.</p>;
  if (state === "running") return <p role="status">It is under way …</p>;
  if (state === "failed" || report === null)
    return (
      <p>
        <Badge tone="bad">failed</Badge> The ledger could not be read to its end; the log has the
        cause.
      </p>
    );
  return (
    <p>
      {report.ok ? <Badge tone="good">right</Badge> : <Badge tone="bad">wrong</Badge>}{" "}
      {countText(report.entries)} entries of {countText(report.accounts)} accounts
      {!report.ok && (
        <>
          , {countText(report.problems_total)} problems, which{" "}
          <code>npm run -s tributary -- verify</code> lists
        </>
      )}
      {ended !== null && (
        <>
          , <Time at={ended} ago />
        </>
      )}
    </p>
  );
}

const settingColumns: readonly Column<Setting>[] = [
  {
    head: "Setting",
    names: true,
    cell: ({ meaning, name }) => <code title={meaning}>{name}</code>,
  },
  {
    head: "Value",
    cell: ({ secret, value }) =>
      secret ? <span class="quiet">hidden</span> : (value ?? <span class="quiet">–</span>),
  },
  {
    head: "From",
    cell: ({ source }) => (source === "default" ? <span class="quiet">default</span> : source),
  },
  { head: "Meaning", cell: ({ meaning }) => <span class="wraps">{withCode(meaning)}</span> },
];

function SettingTable() {
  const load = useLoad("settings", (signal) =>
    get<{ readonly data: readonly Setting[] }>("/settings", { signal }),
  );
  const [all, setAll] = useState(false);
  return (
    <Section
      title="Settings of this replica"
      hint="They come from the environment; a change there holds from the next start on."
      actions={
        <Button onClick={() => setAll(!all)}>{all ? "Only what is set" : "Show all"}</Button>
      }
    >
      <Loaded load={load} what="the settings">
        {({ data }) => (
          <Table
            caption="Settings"
            columns={settingColumns}
            rows={data.filter(({ source }) => all || source !== "default")}
            idOf={({ name }) => name}
          />
        )}
      </Loaded>
    </Section>
  );
}
