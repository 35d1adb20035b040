/** Signals that come this soon after another are the same wish. */
const samePressMs = 500;

/**
 * Calls the listener once for one Ctrl-C. npm sends on to its script what it gets, so that a Ctrl-C comes twice to a program
 * of `npm start`, from the terminal and from npm, and a second one leaves at once. `now` gives milliseconds.
 */
export function onePress<Signal>(
  listener: (signal: Signal) => void,
  now: () => number,
): (signal: Signal) => void {
  let lastMs = -Infinity;
  return (signal) => {
    const atMs = now();
    if (atMs - lastMs < samePressMs) return;
    lastMs = atMs;
    listener(signal);
  };
}
