import { useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { CopyButton } from "./text.tsx";

const hashed = "Keep it now: it is shown this once, and only its hash is stored.";

/** Shows a secret once, in what stands as `dialog`; `what` is such as "key". */
export function useSecret(what: string, words = hashed) {
  const [secret, show] = useState<string | null>(null);
  const dialog = secret !== null && (
    <SecretDialog what={what} words={words} secret={secret} onClose={() => show(null)} />
  );
  return { dialog, show };
}

function SecretDialog({
  onClose,
  secret,
  what,
  words,
}: {
  readonly what: string;
  readonly words: string;
  readonly secret: string;
  readonly onClose: () => void;
}) {
  return (
    <Dialog title={`The new ${what}`} onClose={onClose}>
      <div class="stack">
        <p>{words}</p>
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
