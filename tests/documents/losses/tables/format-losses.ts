/**
 * What becomes of a part of a request. carried: it goes to the model as it is; converted: it goes on in another form;
 * served: the service does it itself, the model sees nothing of it; ignored: it changes nothing; refused: 400.
 */
export type Fate = "carried" | "converted" | "served" | "ignored" | "refused";

/**
 * One row of a format's table: docs/losses.md shows it, and a test asks a service for it. A field is a place of
 * the body; brackets hold the role or else the type of a list's elements, `a|b` one of some, `*` any other.
 */
export interface Loss<Is extends Fate = Fate> {
  readonly fate: Is;
  readonly fields: readonly string[];
  /** What it becomes, or what to do instead. */
  readonly how: string;
  /** Which values the row is about; null: all that the field may have. */
  readonly when: string | null;
}

/** The table of one format, by topics; what is the same in several formats has one name in them. */
export type Losses = Readonly<Record<string, Loss>>;

type Row<Is extends Fate> = (fields: string, how: string, when?: string) => Loss<Is>;

function rowOf<const Is extends Fate>(fate: Is): Row<Is> {
  return (fields, how, when) => ({ fate, fields: fields.split(" "), how, when: when ?? null });
}

/** It goes to the model as it is. */
export const carried = rowOf("carried");

/** It goes to the model in another form. */
export const converted = rowOf("converted");

/** The service does it itself. */
export const served = rowOf("served");

/** It changes nothing. */
export const ignored = rowOf("ignored");

/** 400, with the field in `param` or in the message. */
export const refused = rowOf("refused");
