import type { ComponentChildren } from "preact";

/** A button; one that waits cannot be pressed again. */
export function Button({
  busy = false,
  children,
  disabled = false,
  kind = "plain",
  label,
  onClick,
  type = "button",
}: {
  readonly children: ComponentChildren;
  readonly kind?: "plain" | "main" | "danger" | "quiet" | "quiet-danger";
  readonly type?: "button" | "submit";
  readonly busy?: boolean;
  readonly disabled?: boolean;
  /** For screen readers, where the text alone does not say which thing is meant. */
  readonly label?: string;
  readonly onClick?: (event: MouseEvent) => void;
}) {
  return (
    <button
      type={type}
      class={kind === "quiet-danger" ? "button button-quiet quiet-danger" : `button button-${kind}`}
      disabled={disabled || busy}
      aria-label={label}
      aria-busy={busy}
      onClick={onClick}
    >
      {children}
    </button>
  );
}
