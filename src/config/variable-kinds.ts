/** What values a variable takes; `allowed` says it in words, for documents and for problems. */
export type VariableKind =
  | { readonly type: "text"; readonly allowed: string }
  | { readonly type: "integer"; readonly minimum: number; readonly maximum: number }
  | { readonly type: "credits"; readonly maximum: number }
  | { readonly type: "choice"; readonly values: readonly string[] }
  /** Any of the values, with commas between them. */
  | { readonly type: "some"; readonly values: readonly string[] };

/** One setting. An empty value counts as none. */
export interface Variable {
  readonly kind: VariableKind;
  /** The text that stands for "not set"; null: `otherwise` says what happens then. */
  readonly default: string | null;
  readonly otherwise?: string;
  readonly meaning: string;
  /** Its value is never shown. */
  readonly secret?: true;
}

/** What a kind is read as. */
export type KindValue<Kind extends VariableKind> = Kind extends { readonly type: "integer" }
  ? number
  : Kind extends { readonly type: "credits" }
    ? bigint
    : Kind extends { readonly type: "choice" }
      ? Kind["values"][number]
      : Kind extends { readonly type: "some" }
        ? readonly Kind["values"][number][]
        : string;

/** A kind in words. */
export function describeKind(kind: VariableKind): string {
  switch (kind.type) {
    case "text":
      return kind.allowed;
    case "integer":
      return `a whole number from ${String(kind.minimum)} to ${String(kind.maximum)}`;
    case "credits":
      return `credits from 0 to ${String(kind.maximum)}, with at most 9 decimals`;
    case "choice":
      return quoted(kind.values);
    case "some":
      return `some of ${quoted(kind.values)} with commas between them`;
    default:
      return kind satisfies never;
  }
}

function quoted(values: readonly string[]): string {
  return values.map((value) => `\`${value}\``).join(", ");
}

// The factories keep the exact type of what they make: ValueOf reads it.

/** Any text; `allowed` says which. */
export function text(allowed: string) {
  return { type: "text", allowed } as const;
}

/** The path of a file that holds another setting. */
export function secretFile(name: string) {
  return text(`a path of a file that holds \`${name}\` and nothing else`);
}

/** A whole number within bounds. */
export function integer(minimum: number, maximum: number) {
  return { type: "integer", minimum, maximum } as const;
}

// Far above any use, far below what 64 bits of 1e-9 credit hold.
/** An amount of credit. */
export function credits(maximum: number) {
  return { type: "credits", maximum } as const;
}

/** One of the values. */
export function choice<const Values extends readonly string[]>(...values: Values) {
  return { type: "choice", values } as const;
}

/** Any of the values. */
export function some<const Values extends readonly string[]>(...values: Values) {
  return { type: "some", values } as const;
}
