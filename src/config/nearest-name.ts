/** The known name that most likely was meant, or null when none is near. */
export function nearestName(name: string, known: readonly string[]): string | null {
  let best: string | null = null;
  // More than a third of the characters wrong is no slip of the finger; two exchanged letters count as two.
  let bestDistance = Math.max(Math.floor(name.length / 3), 2) + 1;
  for (const candidate of known) {
    const distance = editDistance(name, candidate);
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** How many characters must be put in, taken out or exchanged to turn one text into the other. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= to.length; column += 1) {
      const exchange = (previous[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1);
      const takeOut = (previous[column] ?? 0) + 1;
      const putIn = (current[column - 1] ?? 0) + 1;
      current.push(Math.min(exchange, takeOut, putIn));
    }
    previous = current;
  }
  return previous[to.length] ?? 0;
}
