import type { ComponentChildren, ComponentProps } from "preact";
import { useState } from "preact/hooks";
import { ApiError, newOnce } from "../api/client.ts";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { Checks, Choice, Field } from "./field.tsx";
import { withCode } from "./text.tsx";

interface Shared {
  /** What it has before it is changed; nothing, or the first choice, where absent. */
  readonly initial?: string;
  /** What the API calls it, where that is not its name. */
  readonly param?: string;
}
type LineField = Shared & Omit<ComponentProps<typeof Field>, "value" | "onInput" | "error">;
type ChoiceField = Shared & Omit<ComponentProps<typeof Choice>, "value" | "onChange">;
type ChecksField = Shared & Omit<ComponentProps<typeof Checks>, "value" | "onChange">;
type AnyField = LineField | ChoiceField | ChecksField;

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
  leave = "Cancel",
  onClose,
  run,
  title,
}: {
  readonly title: string;
  /** The words on the button: what it does, such as "Revoke the key". */
  readonly action: string;
  readonly danger?: boolean;
  /** The words on the button that leaves it, where "Cancel" could be what it asks about. */
  readonly leave?: string;
  readonly onClose: () => void;
  /** By name, in their order. The first has the focus. */
  readonly fields?: Readonly<Record<Name, AnyField>>;
  /** Does it, and has the page read it again; the dialog closes then, and shows what failed. */
  readonly run: (once: string, values: Values<Name>) => Promise<void>;
  /** What it will do. */
  readonly children?: ComponentChildren;
}) {
  const named = Object.entries(fields ?? {}) as [Name, AnyField][];
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
    ([name, field]) => isLine(field) && error?.param === (field.param ?? name),
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
            {withCode(wordsOf(error))}
          </p>
        )}
        <div class="actions">
          <Button kind="quiet" onClick={onClose}>
            {leave}
          </Button>
          <Button type="submit" kind={danger ? "danger" : "main"} busy={busy}>
            {action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

/** What the API says is for those who send; a person has the page in the place of its answer. */
function wordsOf({ code, message }: ApiError): string {
  if (code !== "version_conflict") return message;
  return "It was changed meanwhile, and stays as it is now. Load the page again and look at it first.";
}

/** What was filled in: fields that were left empty are not sent. */
export function filled(values: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
}

/** What was typed into a field that had something: the field's part of a merge, in which null takes away. */
export function changed<Value>(
  typed: string,
  before: string,
  valueOf: (typed: string) => Value,
): Value | null | undefined {
  const trimmed = typed.trim();
  if (trimmed === before) return undefined;
  return trimmed === "" ? null : valueOf(trimmed);
}

/** A text as it is. */
export function asText(typed: string): string {
  return typed;
}

/** A count as a field has it; "" for none. */
export function typedCount(count: number | null): string {
  return count === null ? "" : String(count);
}

/** The same of a field for a count; what is none goes out as it was typed, so that the API says what is wrong with it. */
export function changedCount(
  typed: string,
  before: number | null,
): number | string | null | undefined {
  return changed(typed, typedCount(before), (text) =>
    /^\d{1,15}$/.test(text) ? Number(text) : text,
  );
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
  readonly field: AnyField;
  readonly first: boolean;
  readonly value: string;
  readonly error: string | null;
  readonly onValue: (value: string) => void;
}) {
  if ("choices" in field) return <Choice {...field} value={value} onChange={onValue} />;
  if ("options" in field) return <Checks {...field} value={value} onChange={onValue} />;
  return <Field {...field} value={value} onInput={onValue} error={error} autoFocus={first} />;
}

function isLine(field: AnyField): field is LineField {
  return !("choices" in field || "options" in field);
}

function initialOf(field: AnyField): string {
  return field.initial ?? ("choices" in field ? (field.choices[0]?.[0] ?? "") : "");
}
