import { send } from "../../api/client.ts";
import type { Account, Key, ShownKey } from "../../api/types.ts";
import { filled, FormDialog } from "../../components/form-dialog.tsx";
import { say } from "../../components/toast.tsx";

interface KeyDialogProps {
  readonly value: Key;
  readonly onClose: () => void;
  readonly onDone: () => void;
}
interface SecretDialogProps {
  readonly onClose: () => void;
  readonly onMade: (key: ShownKey) => void;
}

const dayMs = 86_400_000;

/** Makes a key of an account. */
export function NewKey({
  account,
  onClose,
  onMade,
}: SecretDialogProps & { readonly account: Account }) {
  return (
    <FormDialog
      title={`New key of ${account.name}`}
      action="Make the key"
      onClose={onClose}
      fields={{
        name: { label: "Name", placeholder: "web", hint: "Of the client that uses it." },
        scopes: {
          label: "May",
          choices: [
            ["both", "generate and read"],
            ["generate", "generate"],
            ["read", "read: look at the account, never spend"],
          ],
        },
        expires: {
          label: "Expires",
          choices: [
            ["", "never"],
            ["1", "in a day"],
            ["30", "in 30 days"],
            ["90", "in 90 days"],
            ["365", "in a year"],
          ],
        },
      }}
      run={async (once, { expires, name, scopes }) => {
        const endMs = Date.now() + Number(expires) * dayMs;
        const body = {
          ...filled({ name: name.trim() }),
          ...(expires === "" ? {} : { expires_at: new Date(endMs).toISOString() }),
          ...(scopes === "both" ? {} : { scopes: [scopes] }),
        };
        onMade(await send<ShownKey>("POST", `/accounts/${account.id}/keys`, { body, once }));
      }}
    />
  );
}

/** Pauses a key that is active, and resumes a paused one. */
export function PauseKey({ onClose, onDone, value }: KeyDialogProps) {
  const pauses = value.status === "active";
  return (
    <FormDialog
      title={`${pauses ? "Pause" : "Resume"} the key ${value.name}?`}
      action={pauses ? "Pause the key" : "Resume the key"}
      onClose={onClose}
      run={async () => {
        const body = { status: pauses ? "paused" : "active" };
        await send("PATCH", `/keys/${value.id}`, { body });
        say(`${value.name} is ${pauses ? "paused" : "active"}`);
        onDone();
      }}
    >
      <p>
        {pauses
          ? "From the next request on it is answered 403, until it is resumed. What runs ends as it would."
          : "From the next request on it is good again."}
      </p>
    </FormDialog>
  );
}

/** Gives a key another secret. */
export function RotateKey({ onClose, onMade, value }: SecretDialogProps & { readonly value: Key }) {
  return (
    <FormDialog
      title={`Rotate the key ${value.name}?`}
      action="Make a new secret"
      onClose={onClose}
      fields={{
        overlap: {
          label: "The old secret is good for",
          initial: "86400",
          choices: [
            ["0", "no longer"],
            ["3600", "another hour"],
            ["86400", "another day"],
            ["604800", "another week"],
          ],
        },
      }}
      run={async (once, { overlap }) => {
        const body = { overlap_seconds: Number(overlap) };
        onMade(await send<ShownKey>("POST", `/keys/${value.id}/rotate`, { body, once }));
      }}
    >
      <p>It gets a new secret, shown once. Its id, limits and receipts go on.</p>
    </FormDialog>
  );
}

/** Ends a key for good. */
export function RevokeKey({ onClose, onDone, value }: KeyDialogProps) {
  return (
    <FormDialog
      title={`Revoke the key ${value.name}?`}
      action="Revoke the key"
      danger
      onClose={onClose}
      run={async (once) => {
        await send("DELETE", `/keys/${value.id}`, { once });
        say(`${value.name} is revoked`);
        onDone();
      }}
    >
      <p>
        From the next request on it is answered 401, for good: a revoked key cannot be brought back.
        What runs with it ends as it would.
      </p>
    </FormDialog>
  );
}
