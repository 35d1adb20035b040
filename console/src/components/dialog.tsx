import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

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
