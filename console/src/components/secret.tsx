import { useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { CopyButton } from "./text.tsx";

const hashed = "Keep it now: it is shown this once, and only its hash is stored.";

/** What the API answered that has a secret; null: an earlier try, whose answer was lost, had it. */
interface Made {
  readonly secret: string | null;
}

/** Shows a secret once, in what stands as `dialog`; `what` is such as "key". */
export function useSecret(what: string, words = hashed) {
  const [made, setMade] = useState<(Made & { readonly again: Again }) | null>(null);
  const close = (): void => setMade(null);
  return {
    dialog:
      made === null ? null : made.secret === null ? (
        <LostSecret what={what} again={made.again} onClose={close} />
      ) : (
        <SecretDialog what={what} words={words} secret={made.secret} onClose={close} />
      ),
    show: (shown: Made, again: Again) => setMade({ secret: shown.secret, again }),
  };
}

/** The way out where the secret is lost: the words on the button, and what it does. */
interface Again {
  readonly action: string;
  readonly run: () => void;
}

function LostSecret({
  again,
  onClose,
  what,
}: {
  readonly what: string;
  readonly again: Again;
  readonly onClose: () => void;
}) {
  return (
    <Dialog title={`The ${what} cannot be shown again`} onClose={onClose}>
      <div class="stack">
        <p>
          An earlier try made it, and its answer was lost on the way, with the {what} in it. It was
          made once, and is kept nowhere.
        </p>
        <div class="actions">
          <Button kind="quiet" onClick={onClose}>
            Leave it
          </Button>
          <Button
            kind="main"
            onClick={() => {
              onClose();
              again.run();
            }}
          >
            {again.action}
          </Button>
        </div>
      </div>
    </Dialog>
  );
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
