import { useState } from "preact/hooks";
import { send } from "../../api/client.ts";
import type { Key, ShownKey } from "../../api/types.ts";
import { ActionDialog } from "../../components/dialog.tsx";
import { Choice } from "../../components/field.tsx";
import { say } from "../../components/toast.tsx";

interface KeyDialogProps {
  readonly value: Key;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

/** Pauses a key that is active, and resumes a paused one. */
export function PauseKey({ onClose, onDone, value }: KeyDialogProps) {
  const pauses = value.status === "active";
  return (
    <ActionDialog
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
      {() => (
        <p>
          {pauses
            ? "From the next request on it is answered 403, until it is resumed. What runs ends as it would."
            : "From the next request on it is good again."}
        </p>
      )}
    </ActionDialog>
  );
}

/** Gives a key another secret. */
export function RotateKey({
  onClose,
  onMade,
  value,
}: {
  readonly value: Key;
  readonly onClose: () => void;
  readonly onMade: (key: ShownKey) => void;
}) {
  const [overlap, setOverlap] = useState<"0" | "3600" | "86400" | "604800">("86400");
  return (
    <ActionDialog
      title={`Rotate the key ${value.name}?`}
      action="Make a new secret"
      onClose={onClose}
      run={async (once) => {
        const body = { overlap_seconds: Number(overlap) };
        onMade(await send<ShownKey>("POST", `/keys/${value.id}/rotate`, { body, once }));
      }}
    >
      {() => (
        <>
          <p>It gets a new secret, shown once. Its id, limits and receipts go on.</p>
          <Choice
            label="The old secret is good for"
            value={overlap}
            onChange={setOverlap}
            choices={[
              ["0", "no longer"],
              ["3600", "another hour"],
              ["86400", "another day"],
              ["604800", "another week"],
            ]}
          />
        </>
      )}
    </ActionDialog>
  );
}

/** Ends a key for good. */
export function RevokeKey({ onClose, onDone, value }: KeyDialogProps) {
  return (
    <ActionDialog
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
      {() => (
        <p>
          From the next request on it is answered 401, for good: a revoked key cannot be brought
          back. What runs with it ends as it would.
        </p>
      )}
    </ActionDialog>
  );
}
