// Exact sums of decimal strings: amounts are integers of 1e-9 credit, lines of a sum of 1e-15.

/** A decimal string in units of 10 to the power of -`decimals`. */
export function unitsOf(text: string, decimals: number): bigint {
  const [, sign = "", digits = "0", rest = ""] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text) ?? [];
  return BigInt(sign + digits + rest.slice(0, decimals).padEnd(decimals, "0"));
}

/** The same back, without zeros that say nothing. */
export function textOf(units: bigint, decimals: number): string {
  const sign = units < 0n ? "-" : "";
  const digits = (units < 0n ? -units : units).toString().padStart(decimals + 1, "0");
  const rest = digits.slice(-decimals).replace(/0+$/, "");
  return `${sign}${digits.slice(0, -decimals)}${rest === "" ? "" : `.${rest}`}`;
}
