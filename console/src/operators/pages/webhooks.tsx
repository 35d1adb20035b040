import { useState } from "preact/hooks";
import { getAll } from "../../api/client.ts";
import type { ShownWebhook, Webhook } from "../../api/types.ts";
import { useLoad } from "../../api/use-load.ts";
import { Button } from "../../components/button.tsx";
import { PageHead } from "../../components/page.tsx";
import { useSecret } from "../../components/secret.tsx";
import { Empty, Loaded } from "../../components/state.tsx";
import { type Column, Table } from "../../components/table.tsx";
import { Badge, Time } from "../../components/text.tsx";
import { linkTo } from "../../place.ts";
import { goTo } from "../../router.ts";
import { useMay } from "../session.ts";
import { Deliveries } from "./deliveries.tsx";
import {
  DeleteWebhook,
  EditWebhook,
  NewWebhook,
  PauseWebhook,
  RotateWebhook,
} from "./webhook-dialogs.tsx";

interface Asked {
  readonly what: "edit" | "rotate" | "pause" | "delete";
  readonly webhook: Webhook;
}

/** Addresses that get what happens, and the deliveries of the one that the address of the page names. */
export function WebhooksPage({ query }: { readonly query: URLSearchParams }) {
  const load = useLoad("webhooks", (signal) => getAll<Webhook>("/webhooks", { signal }));
  const [making, setMaking] = useState(false);
  const [asked, setAsked] = useState<Asked | null>(null);
  const secret = useSecret(
    "secret",
    "Keep it now: it is shown this once. The receiver verifies by it.",
  );
  const mayChange = useMay("owner");
  const shown = query.get("webhook");
  const close = (): void => setAsked(null);
  const made = (webhook: ShownWebhook): void => {
    const run = (): void => setAsked({ what: "rotate", webhook });
    secret.show(webhook, { action: "Rotate the secret", run });
    void load.reload();
  };
  const make = mayChange && (
    <Button kind="main" onClick={() => setMaking(true)}>
      New webhook
    </Button>
  );
  return (
    <>
      <PageHead title="Webhooks" actions={make}>
        <span class="quiet">
          Addresses that get what happens, signed as Standard Webhooks has it. An address leads to
          its deliveries.
        </span>
      </PageHead>
      <Loaded load={load} what="the webhooks">
        {({ data }) =>
          data.length === 0 ? (
            <Empty title="There is no webhook">
              <p>
                A webhook sends what happens to an address of yours: a low balance, a budget that is
                reached, a key that expires, a deployment that is down.
              </p>
              {make || <p class="quiet">An operator with the role owner makes webhooks.</p>}
            </Empty>
          ) : (
            <Table
              caption="Webhooks"
              columns={[
                ...columns.filter(
                  (column) => column !== about || data.some((one) => one.description !== ""),
                ),
                ...(mayChange ? [actionsOf(setAsked)] : []),
              ]}
              rows={data}
              idOf={({ id }) => id}
              current={shown}
            />
          )
        }
      </Loaded>
      {/* The webhooks would move them. */}
      {shown !== null && (load.data ?? load.error) !== null && (
        <Deliveries
          key={shown}
          webhook={shown}
          url={load.data?.data.find(({ id }) => id === shown)?.url}
          mayChange={mayChange}
        />
      )}
      {making && <NewWebhook onClose={() => setMaking(false)} onMade={made} />}
      {asked?.what === "edit" && (
        <EditWebhook webhook={asked.webhook} onClose={close} onDone={load.reload} />
      )}
      {asked?.what === "rotate" && (
        <RotateWebhook webhook={asked.webhook} onClose={close} onMade={made} />
      )}
      {asked?.what === "pause" && (
        <PauseWebhook webhook={asked.webhook} onClose={close} onDone={load.reload} />
      )}
      {asked?.what === "delete" && (
        <DeleteWebhook
          webhook={asked.webhook}
          onClose={close}
          onDone={() => {
            if (asked.webhook.id === shown) goTo(linkTo(["webhooks"]));
            return load.reload();
          }}
        />
      )}
      {secret.dialog}
    </>
  );
}

const about: Column<Webhook> = {
  head: "About",
  cell: ({ description }) => description !== "" && <span class="wraps">{description}</span>,
};
const columns: readonly Column<Webhook>[] = [
  {
    head: "Address",
    names: true,
    cell: ({ id, url }) => (
      <a title={url} href={linkTo(["webhooks"], { webhook: id })}>
        {url}
      </a>
    ),
  },
  about,
  {
    head: "Events",
    cell: ({ types }) => (types === null ? "all" : <span class="wraps">{types.join(", ")}</span>),
  },
  {
    head: "Status",
    cell: ({ failing_since: failing, status }) => (
      <>
        <Badge tone={status === "active" ? "good" : "warn"}>{status}</Badge>
        {failing !== null && (
          <>
            {" "}
            <Badge tone="bad">failing</Badge> since <Time at={failing} />
          </>
        )}
      </>
    ),
  },
  { head: "Made", cell: ({ created_at: at }) => <Time at={at} /> },
];

function actionsOf(ask: (asked: Asked) => void): Column<Webhook> {
  const words = { edit: "Change", rotate: "Rotate secret", delete: "Delete" } as const;
  return {
    head: "",
    cell: (webhook) => (
      <div class="row-actions">
        {(["edit", "rotate", "pause", "delete"] as const).map((what) => {
          const pause = webhook.status === "active" ? "Pause" : "Resume";
          const text = what === "pause" ? pause : words[what];
          const label =
            what === "rotate"
              ? `Rotate secret of ${webhook.url}`
              : `${text} the webhook of ${webhook.url}`;
          return (
            <Button
              key={what}
              kind={what === "delete" ? "quiet-danger" : "quiet"}
              label={label}
              onClick={() => ask({ what, webhook })}
            >
              {text}
            </Button>
          );
        })}
      </div>
    ),
  };
}
