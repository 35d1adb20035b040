import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

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
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    // Closing gives the focus back to what had it, which a dialog that left the page already could not.
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={element}
      class="dialog"
      aria-labelledby={id}
      // Escape closes it by the page's state, as a button does: what the browser closes by itself stays in a page that opens it again
      // before it has heard of that, and is not shown any more.
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        onClose();
      }}
      // One that was taken away, and closed so, has said already why.
      onClose={() => {
        if (element.current !== null) onClose();
      }}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}
