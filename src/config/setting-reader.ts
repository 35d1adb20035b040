import {
  describeKind,
  type Environment,
  type VariableName,
  variables,
  type Variable,
} from "./environment.ts";

/** One setting that cannot be used. `value` is what may be shown of it. */
export interface SettingProblem {
  readonly variable: VariableName;
  readonly value: string;
  readonly allowed: string;
  readonly remedy: string;
}

/** A problem as one line: variable, value, what is allowed, what to do. */
export function formatProblem(problem: SettingProblem): string {
  return `${formatValue(problem)}; ${problem.remedy}`;
}

/** The same without what to do. */
export function formatValue({ allowed, value, variable }: SettingProblem): string {
  return `${variable}=${value}: allowed is ${allowed.replaceAll("`", "")}`;
}

/** Reads settings by their kind and collects every problem, so that one start tells all of them. */
export class SettingReader {
  readonly #environment: Environment;
  readonly #problems: SettingProblem[] = [];

  constructor(environment: Environment) {
    this.#environment = environment;
  }

  get problems(): readonly SettingProblem[] {
    return this.#problems;
  }

  /** The text without spaces around it, else the default. */
  text(name: VariableName): string | null {
    const given = this.#environment[name]?.trim() ?? "";
    return given === "" ? variables[name].default : given;
  }

  /** The parts between commas, without empty ones. */
  list(name: VariableName): readonly string[] {
    const parts = (this.text(name) ?? "").split(",").map((part) => part.trim());
    return parts.filter((part) => part !== "");
  }

  integer(name: VariableName): number | null {
    const { kind }: Variable = variables[name];
    const text = this.text(name);
    if (text === null || kind.type !== "integer") return null;
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= kind.minimum && value <= kind.maximum) return value;
    this.problem(name, this.#removeAdvice(name));
    return null;
  }

  choice<Value extends string>(name: VariableName, values: readonly [Value, ...Value[]]): Value {
    const text = (this.text(name) ?? "").toLowerCase();
    const found = values.find((value) => value === text);
    if (found === undefined) this.problem(name, this.#removeAdvice(name));
    return found ?? values[0];
  }

  /** Notes what is wrong with a setting; its value is shown only as far as it is no secret. */
  problem(name: VariableName, remedy: string): void {
    const variable: Variable = variables[name];
    const value = variable.secret === true ? "(not shown)" : showValue(this.text(name) ?? "");
    this.#problems.push({ variable: name, value, allowed: describeKind(variable.kind), remedy });
  }

  #removeAdvice(name: VariableName): string {
    const variable: Variable = variables[name];
    return `correct it, or remove it to get ${variable.default ?? variable.otherwise ?? "the default"}`;
  }
}

/** One line, short, and without the password that an address may carry. */
function showValue(value: string): string {
  const shown = JSON.stringify(value.replace(/^([a-z+.-]+:\/\/)?.*@/i, "$1(not shown)@"));
  return shown.length > 200 ? `${shown.slice(0, 200)}...` : shown;
}
