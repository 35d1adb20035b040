import { useState } from "preact/hooks";
import type { Key, ShownKey } from "../../api/types.ts";
import { Button } from "../../components/button.tsx";
import { useSecret } from "../../components/secret.tsx";
import { BudgetDialog, EditKey, PauseKey, RevokeKey, RotateKey } from "./key-dialogs.tsx";

/** The kind of the button that revokes, which cannot be undone, by that of the others. */
const revokes = { plain: "danger", quiet: "quiet-danger" } as const;

type What = "edit" | "budget" | "pause" | "rotate" | "revoke";

/** What can be done to a key: its buttons, and what stands as `dialog` once one is pressed. */
export function useKeyDialogs(onDone: () => Promise<void>) {
  const [asked, setAsked] = useState<{ readonly what: What; readonly key: Key } | null>(null);
  const secret = useSecret("key");
  const onClose = (): void => setAsked(null);
  const made = (key: ShownKey): void => {
    const run = (): void => setAsked({ what: "rotate", key });
    secret.show(key, { action: "Rotate the key", run });
    void onDone();
  };
  const shared = asked !== null && { value: asked.key, onClose, onDone };
  const buttons = (key: Key, whats: readonly What[], kind: "plain" | "quiet") =>
    key.revoked_at === null &&
    whats.map((what) => {
      const words = wordsOf(key, what);
      return (
        <Button
          key={what}
          kind={what === "revoke" ? revokes[kind] : kind}
          label={`${words} the key ${key.name}`}
          onClick={() => setAsked({ what, key })}
        >
          {words}
        </Button>
      );
    });
  return {
    buttons,
    /** Shows the secret of a key that was made. */
    made,
    dialog: (
      <>
        {shared !== false && asked?.what === "edit" && <EditKey {...shared} />}
        {shared !== false && asked?.what === "budget" && <BudgetDialog {...shared} />}
        {shared !== false && asked?.what === "pause" && <PauseKey {...shared} />}
        {shared !== false && asked?.what === "revoke" && <RevokeKey {...shared} />}
        {asked?.what === "rotate" && (
          <RotateKey value={asked.key} onClose={onClose} onMade={made} />
        )}
        {secret.dialog}
      </>
    ),
  };
}

function wordsOf({ status }: Key, what: What): string {
  switch (what) {
    case "edit":
      return "Change";
    case "budget":
      return "Budget";
    case "pause":
      return status === "active" ? "Pause" : "Resume";
    case "rotate":
      return "Rotate";
    case "revoke":
      return "Revoke";
  }
}
