import { isRecord } from "../../cases/files.ts";

/** Stands for a part that is taken out. */
export const removed = Symbol("removed");

type Change = (value: unknown) => unknown;

/** The steps of a place: names of fields, and labels in brackets, as `messages`, `[user]`, `content`. */
export function stepsOf(place: string): readonly string[] {
  return place.match(/\[[^\]]*\]|[^.[\]]+/gu) ?? [];
}

/** What stands in brackets for an element of a list: its type, its role where that is `message` or nothing, else "". */
export function labelOf(element: unknown): string {
  if (!isRecord(element)) return "";
  const { role, type } = element;
  if (typeof type === "string" && type !== "message") return type;
  return typeof role === "string" ? role : "";
}

/** Whether two places are one, where `wanted` may leave open what a list's elements are, and an element what it is. */
export function isPlace(seen: string, wanted: string): boolean {
  return stepsOf(seen).length === stepsOf(wanted).length && leadsTo(seen, wanted);
}

/** Whether a place is inside of which `wanted` is, or the same. */
export function leadsTo(seen: string, wanted: string): boolean {
  const [left, right] = [stepsOf(seen), stepsOf(wanted)];
  return left.every((step, at) => {
    const other = right[at] ?? "";
    return isStep(step, other) || (step === "[]" && other.startsWith("["));
  });
}

function isStep(seen: string, wanted: string): boolean {
  if (seen === wanted || !wanted.startsWith("[")) return seen === wanted;
  if (["[]", "[*]"].includes(wanted)) return seen.startsWith("[");
  return wanted.slice(1, -1).split("|").includes(seen.slice(1, -1));
}

/** Every value that stands at a place of a body. */
export function valuesAt(body: unknown, place: string): readonly unknown[] {
  const values: unknown[] = [];
  changeAt(body, place, (value) => {
    values.push(value);
    return value;
  });
  return values;
}

/** A copy of a body without what stands at a place. */
export function withoutPlace(body: unknown, place: string): unknown {
  return changeAt(body, place, () => removed);
}

/** A copy of a body in which what stands at a place is changed. */
export function changeAt(body: unknown, place: string, change: Change): unknown {
  return changeSteps(body, stepsOf(place), change);
}

function changeSteps(value: unknown, steps: readonly string[], change: Change): unknown {
  const [step, ...rest] = steps;
  if (step === undefined) return change(value);
  if (step.startsWith("[")) {
    if (!Array.isArray(value)) return value;
    return value
      .map((element: unknown) =>
        isRecord(element) && isStep(`[${labelOf(element)}]`, step)
          ? changeSteps(element, rest, change)
          : element,
      )
      .filter((element) => element !== removed);
  }
  if (!isRecord(value) || !Object.hasOwn(value, step)) return value;
  const changed = changeSteps(value[step], rest, change);
  const { [step]: _before, ...others } = value;
  return changed === removed ? others : { ...value, [step]: changed };
}
