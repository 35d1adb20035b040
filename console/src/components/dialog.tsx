import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { ApiError, newOnce } from "../api/client.ts";
import { Button } from "./button.tsx";

/** What stands over the page until it is answered; Escape closes it, and the focus goes back to where it was. */
export function Dialog({
  children,
  onClose,
  title,
}: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={element} class="dialog" aria-labelledby={id} onClose={onClose}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

/**
 * Asks before it does something, and names what that will do. A change that failed can be sent again: it has the same
 * `once`, so it happens once.
 */
export function ActionDialog({
  action,
  children,
  danger = false,
  disabled = false,
  onClose,
  run,
  title,
}: {
  readonly title: string;
  /** The words on the button: what it does, such as "Revoke the key". */
  readonly action: string;
  readonly danger?: boolean;
  readonly disabled?: boolean;
  readonly onClose: () => void;
  /** Does it; the dialog closes when it is done, and shows what failed. */
  readonly run: (once: string) => Promise<void>;
  /** What it will do, and the fields that it needs; gets the error of the last try. */
  readonly children: (error: ApiError | null) => ComponentChildren;
}) {
  const [once, setOnce] = useState(newOnce);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const submit = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      await run(once);
      onClose();
    } catch (caught) {
      if (!(caught instanceof ApiError)) throw caught;
      setError(caught);
      // What was refused is another change when it is mended; what was not answered is the same one.
      if (caught.status >= 400 && caught.status < 500) setOnce(newOnce());
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (!busy) void submit();
        }}
      >
        {children(error)}
        {error !== null && error.param === null && (
          <p class="error" role="alert">
            {error.message}
          </p>
        )}
        <div class="actions">
          <Button kind="quiet" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" kind={danger ? "danger" : "main"} busy={busy} disabled={disabled}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** What the API said of one field. */
export function errorOf(error: ApiError | null, param: string): string | null {
  return error?.param === param ? error.message : null;
}
