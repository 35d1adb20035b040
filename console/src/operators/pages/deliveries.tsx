import { useState } from "preact/hooks";
import { ApiError, send } from "../../api/client.ts";
import type { Delivery } from "../../api/types.ts";
import { Button } from "../../components/button.tsx";
import { Section } from "../../components/page.tsx";
import { Empty } from "../../components/state.tsx";
import { type Column, PagedTable } from "../../components/table.tsx";
import { Badge, Time } from "../../components/text.tsx";
import { say } from "../../components/toast.tsx";
import { durationText } from "../../words.ts";

const everyMs = 2_000;
const tones = { pending: "live", delivered: "good", failed: "bad" } as const;

/** What a webhook got and gets, with what the last try of each brought. */
export function Deliveries({
  mayChange,
  url,
  webhook,
}: {
  /** Where the webhook leads to; undefined: not known. */
  readonly url: string | undefined;
  /** The id of the webhook. */
  readonly webhook: string;
  readonly mayChange: boolean;
}) {
  const [turn, setTurn] = useState(0);
  const path = `/webhooks/${encodeURIComponent(webhook)}`;
  const queue = async (rest: string, words: string): Promise<void> => {
    try {
      await send("POST", `${path}/${rest}`);
      say(words);
      setTurn((old) => old + 1);
    } catch (caught) {
      if (!(caught instanceof ApiError)) throw caught;
      say(caught.message, "bad");
    }
  };
  const again: Column<Delivery> = {
    head: "",
    cell: ({ event }) => (
      <div class="row-actions">
        <Button
          kind="quiet"
          label={`Send again: ${event.type} ${event.id}`}
          onClick={() => void queue(`deliveries/${event.id}/resend`, "It is sent again")}
        >
          Send again
        </Button>
      </div>
    ),
  };
  return (
    <Section
      title="Deliveries"
      hint={
        <>
          {url !== undefined && (
            <>
              To <span class="wraps-anywhere">{url}</span>.{" "}
            </>
          )}
          The newest event first; kept for 30 days.
        </>
      }
      actions={
        mayChange && (
          <Button onClick={() => void queue("test", "A test is on its way")}>Send a test</Button>
        )
      }
    >
      <PagedTable
        caption="Deliveries"
        path={`${path}/deliveries`}
        columns={mayChange ? [...columns, again] : columns}
        idOf={({ event }) => event.id}
        everyMs={everyMs}
        turn={turn}
        empty={
          <Empty title="Nothing was sent yet">
            <p>It gets what happens from its making on. A test shows whether that arrives.</p>
          </Empty>
        }
      />
    </Section>
  );
}

const columns: readonly Column<Delivery>[] = [
  {
    head: "Event",
    names: true,
    cell: ({ event }) => (
      <span class="wraps">
        {event.type}
        <br />
        <code class="quiet">{event.id}</code>
      </span>
    ),
  },
  { head: "Happened", cell: ({ event }) => <Time at={event.timestamp} ago /> },
  { head: "Status", cell: ({ state }) => <Badge tone={tones[state]}>{state}</Badge> },
  { head: "Tries", numeric: true, cell: ({ tries }) => <span class="number">{tries}</span> },
  {
    head: "Last answer",
    cell: ({ duration_ms: took, error, status_code: status }) => (
      <>
        {status ?? error ?? <span class="quiet">none yet</span>}
        {took !== null && <span class="quiet"> in {durationText(took)}</span>}
      </>
    ),
  },
  {
    head: "Next try",
    cell: ({ next_try_at: at }) => (at === null ? "" : <Time at={at} ago />),
  },
];
