/** A rule of the contract that did not hold. `rule` names it, so that a shrunk run can be seen to break the same one. */
export class Violation extends Error {
  override readonly name = "Violation";
  readonly rule: string;

  constructor(rule: string, detail: string) {
    super(`${rule}: ${detail}`);
    this.rule = rule;
  }
}

/** Throws a Violation unless it holds. */
export function ensure(holds: boolean, rule: string, detail: () => string): void {
  if (!holds) throw new Violation(rule, detail());
}
