import { useEffect, useState } from "preact/hooks";

interface Toast {
  readonly text: string;
  readonly tone: "good" | "bad";
  readonly number: number;
}

const shownMs = 6_000;
let listener: ((toast: Toast) => void) | null = null;
let number = 0;

/** Says that something was done, for a few seconds, aloud for screen readers. */
export function say(text: string, tone: Toast["tone"] = "good"): void {
  number += 1;
  listener?.({ text, tone, number });
}

/** Where `say` is shown; a page has one. */
export function Toasts() {
  const [toasts, setToasts] = useState<readonly Toast[]>([]);
  useEffect(() => {
    listener = (toast) => {
      setToasts((old) => [...old.slice(-2), toast]);
      setTimeout(() => setToasts((old) => old.filter((other) => other !== toast)), shownMs);
    };
    return () => (listener = null);
  }, []);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.map((toast) => (
        <p key={toast.number} class={`toast toast-${toast.tone}`}>
          {toast.text}
        </p>
      ))}
    </div>
  );
}
