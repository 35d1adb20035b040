/** `1 entry`, `2 entries`, `1,200 entries`. */
export function counted(count: number, one: string, many: string): string {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}
