import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { agoText, creditText, timeText } from "../words.ts";
import { say } from "./toast.tsx";

/** An amount of credits. */
export function Credits({
  amount,
  unit = false,
}: {
  readonly amount: string;
  readonly unit?: boolean;
}) {
  return (
    <span class="number">
      {creditText(amount)}
      {unit && (amount === "1" ? " credit" : " credits")}
    </span>
  );
}

/** Words in which what stands between backticks is code. */
export function withCode(text: string): ComponentChildren {
  return text.split("`").map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part));
}

/** A time; the title has it in UTC. */
export function Time({ at, ago = false }: { readonly at: string; readonly ago?: boolean }) {
  const nowMs = useNow(ago);
  return (
    <time dateTime={at} title={ago ? `${timeText(at)} (${at})` : at} class="number">
      {ago ? agoText(at, nowMs) : timeText(at)}
    </time>
  );
}

function useNow(ticks: boolean): number {
  const [nowMs, setNowMs] = useState(() => Date.now());
  useEffect(() => {
    if (!ticks) return;
    const timer = setInterval(() => setNowMs(Date.now()), 10_000);
    return () => clearInterval(timer);
  }, [ticks]);
  return nowMs;
}

/** A word for a state, with the colour that it has everywhere. */
export function Badge({
  children,
  tone = "plain",
}: {
  readonly children: string;
  readonly tone?: "plain" | "good" | "bad" | "warn" | "live";
}) {
  return <span class={`badge badge-${tone}`}>{children}</span>;
}

/** An id, which can be copied whole. */
export function Id({ children }: { readonly children: string }) {
  return (
    <span class="id">
      <code>{children}</code>
      <CopyButton text={children} label={`Copy ${children}`} />
    </span>
  );
}

/** Puts a text on the clipboard. */
export function CopyButton({ label, text }: { readonly text: string; readonly label: string }) {
  const copy = (): void => {
    // Pages without https have no clipboard, but for those of this machine.
    const written: Promise<void> | undefined = (
      navigator.clipboard as Clipboard | undefined
    )?.writeText(text);
    if (written === undefined) say("This address has no clipboard: select and copy.", "bad");
    else
      written.then(
        () => say("Copied"),
        () => say("The browser did not allow it: select and copy.", "bad"),
      );
  };
  return (
    <button type="button" class="copy" aria-label={label} title={label} onClick={copy}>
      <svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
        <path
          d="M5.5 5.5v-3h8v8h-3m-8-5h8v8h-8z"
          fill="none"
          stroke="currentColor"
          stroke-width="1.3"
        />
      </svg>
    </button>
  );
}
