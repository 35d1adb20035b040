import type { ComponentChildren, ComponentProps } from "preact";
import { useState } from "preact/hooks";
import { ApiError, newOnce } from "../api/client.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { Choice, Field } from "./field.tsx";

interface Shared {
  /** What it has before it is changed; nothing, or the first choice, where absent. */
  readonly initial?: string;
  /** What the API calls it, where that is not its name. */
  readonly param?: string;
}
type LineField = Shared & Omit<ComponentProps<typeof Field>, "value" | "onInput" | "error">;
type ChoiceField = Shared & Omit<ComponentProps<typeof Choice>, "value" | "onChange">;

/** Of each field what stands in it, as it was typed. */
type Values<Name extends string> = Readonly<Record<Name, string>>;

/**
 * Asks before it does something: it names what that will do, and has the fields that it needs. A change that failed can
 * be sent again: it has the same `once`, so it happens once.
 */
export function FormDialog<Name extends string = never>({
  action,
  children,
  danger = false,
  fields,
  onClose,
  run,
  title,
}: {
  readonly title: string;
  /** The words on the button: what it does, such as "Revoke the key". */
  readonly action: string;
  readonly danger?: boolean;
  readonly onClose: () => void;
  /** By name, in their order. The first has the focus. */
  readonly fields?: Readonly<Record<Name, LineField | ChoiceField>>;
  /** Does it; the dialog closes when it is done, and shows what failed. */
  readonly run: (once: string, values: Values<Name>) => Promise<void>;
  /** What it will do. */
  readonly children?: ComponentChildren;
}) {
  const named = Object.entries(fields ?? {}) as [Name, LineField | ChoiceField][];
  const [values, setValues] = useState(
    () =>
      Object.fromEntries(named.map(([name, field]) => [name, initialOf(field)])) as Values<Name>,
  );
  const { busy, error, submit } = useChange(async (once) => {
    await run(once, values);
    onClose();
  });
  // What no field shows, such as what is wrong with a choice, stands above the buttons.
  const atFault = named.find(
    ([name, field]) => !("choices" in field) && error?.param === (field.param ?? name),
  )?.[0];
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (!busy) void submit();
        }}
      >
        {children}
        {named.map(([name, field], place) => (
          <FieldOf
            key={name}
            field={field}
            first={place === 0}
            value={values[name]}
            error={name === atFault && error !== null ? error.message : null}
            onValue={(value) => setValues((old) => ({ ...old, [name]: value }))}
          />
        ))}
        {error !== null && atFault === undefined && (
          <p class="error" role="alert">
            {error.message}
          </p>
        )}
        <div class="actions">
          <Button kind="quiet" onClick={onClose}>
            Cancel
          </Button>
          <Button type="submit" kind={danger ? "danger" : "main"} busy={busy}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** What was filled in: fields that were left empty are not sent. */
export function filled(values: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
}

/** A change with its `once`, made for this opening; whether it is under way, and why its last try failed. */
function useChange(change: (once: string) => Promise<void>) {
  const [once, setOnce] = useState(newOnce);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const submit = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      await change(once);
    } catch (caught) {
      if (!(caught instanceof ApiError)) throw caught;
      setError(caught);
      // What was refused is another change when it is mended; what was not answered is the same one.
      if (caught.status >= 400 && caught.status < 500) setOnce(newOnce());
    } finally {
      setBusy(false);
    }
  };
  return { busy, error, submit };
}

function FieldOf({
  error,
  field: { initial: _initial, param: _param, ...field },
  first,
  onValue,
  value,
}: {
  readonly field: LineField | ChoiceField;
  readonly first: boolean;
  readonly value: string;
  readonly error: string | null;
  readonly onValue: (value: string) => void;
}) {
  if ("choices" in field) return <Choice {...field} value={value} onChange={onValue} />;
  return <Field {...field} value={value} onInput={onValue} error={error} autoFocus={first} />;
}

function initialOf(field: LineField | ChoiceField): string {
  return field.initial ?? ("choices" in field ? (field.choices[0]?.[0] ?? "") : "");
}
