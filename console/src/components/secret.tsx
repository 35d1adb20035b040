import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { CopyButton } from "./text.tsx";

/** Shows a secret, once. */
export function SecretDialog({
  onClose,
  secret,
  what,
}: {
  /** Such as "key". */
  readonly what: string;
  readonly secret: string;
  readonly onClose: () => void;
}) {
  return (
    <Dialog title={`The new ${what}`} onClose={onClose}>
      <div class="stack">
        <p>Keep it now: it is shown this once, and only its hash is stored.</p>
        <p class="secret">
          <code>{secret}</code>
          <CopyButton text={secret} label={`Copy the ${what}`} />
        </p>
        <div class="actions">
          <Button kind="main" onClick={onClose}>
            I have kept it
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
