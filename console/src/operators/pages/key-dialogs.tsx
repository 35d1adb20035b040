import { send } from "../../api/client.ts";
import type { Account, Key, ShownKey } from "../../api/types.ts";
import {
  changed,
  changedCount,
  filled,
  FormDialog,
  typedCount,
} from "../../components/form-dialog.tsx";
import { Credits, Time } from "../../components/text.tsx";
import { say } from "../../components/toast.tsx";
import { asInstant, asTyped, timeZoneField } from "../../time-zones.ts";

interface KeyDialogProps {
  readonly value: Key;
  readonly onClose: () => void;
  readonly onDone: () => Promise<void>;
}
interface SecretDialogProps {
  readonly onClose: () => void;
  readonly onMade: (key: ShownKey) => void;
}

const dayMs = 86_400_000;
const scopeChoices = [
  ["both", "generate and read"],
  ["generate", "generate"],
  ["read", "read: look at the account, never spend"],
] as const;

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
        name: { label: "Name", placeholder: "web", hint: "Which client uses it." },
        scopes: {
          label: "May",
          choices: scopeChoices,
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

/** Gives a key another name, scopes, end or limits. */
export function EditKey({ onClose, onDone, value }: KeyDialogProps) {
  const { limits } = value;
  const ends = asTyped(value.expires_at);
  const hint = "Empty: as its account.";
  return (
    <FormDialog
      title={`Change the key ${value.name}`}
      action="Change the key"
      onClose={onClose}
      fields={{
        name: { label: "Name", initial: value.name, required: true },
        scopes: { label: "May", initial: scopesOf(value), choices: scopeChoices },
        expires: {
          label: "Expires",
          type: "time",
          initial: ends,
          hint: "In your time zone. Empty: never.",
          param: "expires_at",
        },
        minute: {
          label: "Requests a minute",
          initial: typedCount(limits.requests_per_minute),
          inputMode: "numeric",
          hint,
          param: "limits.requests_per_minute",
        },
        output: {
          label: "Output tokens at most",
          initial: typedCount(limits.output_tokens_max),
          inputMode: "numeric",
          hint,
          param: "limits.output_tokens_max",
        },
      }}
      run={async (_once, typed) => {
        const body = {
          name: typed.name.trim(),
          scopes: typed.scopes === "both" ? ["generate", "read"] : [typed.scopes],
          expires_at: changed(typed.expires, ends, asInstant),
          limits: {
            requests_per_minute: changedCount(typed.minute, limits.requests_per_minute),
            output_tokens_max: changedCount(typed.output, limits.output_tokens_max),
          },
        };
        await send("PATCH", `/keys/${value.id}`, { body, version: value.version });
        say("Changed");
        await onDone();
      }}
    >
      <p>It holds from the next request on. A key never loosens a limit of its account.</p>
    </FormDialog>
  );
}

function scopesOf({ scopes: [only, ...others] }: Key): "both" | "generate" | "read" {
  return only === undefined || others.length > 0 ? "both" : only;
}

/** Sets what a key may be charged in each period, or takes that away. */
export function BudgetDialog({ onClose, onDone, value }: KeyDialogProps) {
  const { budget, budget_ends_at: ends, budget_left: left } = value;
  return (
    <FormDialog
      title={`Budget of the key ${value.name}`}
      action="Set the budget"
      onClose={onClose}
      fields={{
        amount: {
          label: "Amount in credits",
          initial: budget?.amount ?? "",
          inputMode: "decimal",
          hint: "Empty: no budget, the credit of the account alone counts.",
          param: "budget.amount",
        },
        period: {
          label: "Each",
          initial: budget?.period ?? "month",
          choices: [
            ["day", "day"],
            ["week", "week, from Monday"],
            ["month", "month, from the 1st"],
            ["total", "in all, without an end"],
          ],
        },
        timezone: { ...timeZoneField(budget?.timezone ?? "UTC"), param: "budget.timezone" },
      }}
      run={async (_once, { amount, period, timezone }) => {
        const wanted = { amount: amount.trim(), period, timezone: timezone.trim() };
        const body = { budget: amount.trim() === "" ? null : wanted };
        await send("PATCH", `/keys/${value.id}`, { body, version: value.version });
        say(body.budget === null ? "The budget is gone" : "The budget is set");
        await onDone();
      }}
    >
      <p>
        {left === null ? (
          "It has none. What its requests of the period were charged already counts."
        ) : (
          <>
            <Credits amount={left} unit /> are left
            {ends === null ? "." : " until "}
            {ends !== null && (
              <>
                <Time at={ends} />.
              </>
            )}{" "}
            What its requests of the period were charged already counts.
          </>
        )}
      </p>
    </FormDialog>
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
        await onDone();
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
        await onDone();
      }}
    >
      <p>
        From the next request on it is answered 401, for good: a revoked key cannot be brought back.
        What runs with it ends as it would.
      </p>
    </FormDialog>
  );
}
