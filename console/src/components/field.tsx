import type { InputHTMLAttributes, TargetedEvent } from "preact";
import { useId } from "preact/hooks";

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
  type = "text",
  value,
}: {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly hint?: string;
  readonly error?: string | null;
  readonly type?: "text" | "password";
  readonly inputMode?: "decimal" | "numeric";
  readonly placeholder?: string;
  readonly required?: boolean;
  readonly autoFocus?: boolean;
  /** Lines: a larger text. */
  readonly rows?: number;
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
          secret={type === "password"}
          inputMode={inputMode}
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
          {error}
        </p>
      )}
    </div>
  );
}

type Typed = TargetedEvent<HTMLInputElement>;

/** Preact's types tie each type of input to roles of its own, so each stands by itself. */
function Line({
  secret,
  ...rest
}: { readonly secret: boolean } & Omit<InputHTMLAttributes, "type" | "role" | "list">) {
  return secret ? <input {...rest} type="password" /> : <input {...rest} type="text" />;
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
