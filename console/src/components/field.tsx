import type { InputHTMLAttributes, TargetedEvent } from "preact";
import { useId } from "preact/hooks";
import { withCode } from "./text.tsx";

/** A line of text with its label; what is wrong with it stands below it. */
export function Field({
  autoFocus = false,
  error = null,
  hint,
  inputMode,
  label,
  onInput,
  placeholder,
  required = false,
  rows,
  suggestions,
  type = "text",
  value,
}: {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly hint?: string;
  readonly error?: string | null;
  /** `time`: a day and an hour in the zone of the person, as "2027-01-01T00:00". */
  readonly type?: "text" | "password" | "time";
  readonly inputMode?: "decimal" | "numeric";
  readonly placeholder?: string;
  readonly required?: boolean;
  readonly autoFocus?: boolean;
  /** Lines: a larger text. */
  readonly rows?: number;
  /** What may be meant, of which the browser offers what looks like what was typed; with words beside it where it is an id. */
  readonly suggestions?: readonly Suggestion[];
}) {
  const id = useId();
  const described = error !== null ? `${id}-error` : hint === undefined ? undefined : `${id}-hint`;
  const shared = {
    id,
    value,
    placeholder,
    required,
    autoComplete: "off",
    spellcheck: false,
    "aria-invalid": error !== null,
    "aria-describedby": described,
    ...(autoFocus ? { autofocus: true } : {}),
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {rows === undefined ? (
        <Line
          {...shared}
          kind={type}
          inputMode={inputMode}
          suggestions={suggestions}
          onInput={(event: Typed) => onInput(event.currentTarget.value)}
        />
      ) : (
        <textarea {...shared} rows={rows} onInput={(event) => onInput(event.currentTarget.value)} />
      )}
      {error === null && hint !== undefined && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {error !== null && (
        <p class="error" id={`${id}-error`}>
          {withCode(error)}
        </p>
      )}
    </div>
  );
}

type Suggestion = string | readonly [value: string, words: string];
type Typed = TargetedEvent<HTMLInputElement>;

/** Preact's types tie each type of input to roles of its own, so each stands by itself. */
function Line({
  kind,
  suggestions,
  ...rest
}: {
  readonly kind: "text" | "password" | "time";
  readonly suggestions: readonly Suggestion[] | undefined;
} & Omit<InputHTMLAttributes, "type" | "role" | "list">) {
  const list = useId();
  if (kind === "password") return <input {...rest} type="password" />;
  if (kind === "time") return <input {...rest} type="datetime-local" />;
  if (suggestions === undefined) return <input {...rest} type="text" />;
  return (
    <>
      <input {...rest} type="text" list={list} />
      <datalist id={list}>
        {suggestions
          .map((one) => (typeof one === "string" ? ([one, one] as const) : one))
          .map(([value, words]) => (
            <option key={value} value={value}>
              {words}
            </option>
          ))}
      </datalist>
    </>
  );
}

/** Some of a few values; the value has them with commas between. */
export function Checks({
  hint,
  label,
  onChange,
  options,
  value,
}: {
  readonly label: string;
  readonly hint?: string;
  readonly value: string;
  readonly options: readonly (readonly [name: string, words: string])[];
  readonly onChange: (value: string) => void;
}) {
  const chosen = value.split(",");
  return (
    <fieldset class="field checks">
      <legend>{label}</legend>
      {hint !== undefined && <p class="hint">{hint}</p>}
      {options.map(([name, words]) => (
        <label key={name} class="check">
          <input
            type="checkbox"
            checked={chosen.includes(name)}
            onChange={({ currentTarget: { checked } }) =>
              onChange(
                options
                  .map(([option]) => option)
                  .filter((option) => (option === name ? checked : chosen.includes(option)))
                  .join(","),
              )
            }
          />
          <span>{words}</span>
        </label>
      ))}
    </fieldset>
  );
}

/** One of a few values. */
export function Choice<Value extends string>({
  choices,
  label,
  onChange,
  value,
}: {
  readonly label: string;
  readonly value: Value;
  readonly choices: readonly (readonly [Value, string])[];
  readonly onChange: (value: Value) => void;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        value={value}
        onChange={(event) => {
          const chosen = choices.find(([name]) => name === event.currentTarget.value);
          if (chosen !== undefined) onChange(chosen[0]);
        }}
      >
        {choices.map(([name, words]) => (
          <option key={name} value={name}>
            {words}
          </option>
        ))}
      </select>
    </div>
  );
}
