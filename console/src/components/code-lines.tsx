import { CopyButton } from "./text.tsx";

/** Lines that are ready to paste, behind their title. */
export function CodeLines({ text, title }: { readonly title: string; readonly text: string }) {
  return (
    <details class="lines">
      <summary>{title}</summary>
      <div class="code">
        <pre tabIndex={0} aria-label={title}>
          {text}
        </pre>
        <CopyButton text={text} label={`Copy the lines for ${title}`} />
      </div>
    </details>
  );
}
