/** What happens, for the program or the person that runs the engine: no prompt, answer or key is ever part of it. */
export type TellEvent = (
  event: string,
  fields: Readonly<Record<string, string | number | boolean | null>>,
) => void;

/** Writes a line an event: JSON, or plain words on a terminal. */
export function openEvents(output: {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}): TellEvent {
  return (event, fields) => {
    if (output.isTTY !== true) output.write(`${JSON.stringify({ event, ...fields })}\n`);
    else {
      const words = Object.entries(fields).map(([name, value]) => `${name}=${String(value)}`);
      output.write(`${[event, ...words].join("  ")}\n`);
    }
  };
}
