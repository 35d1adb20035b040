/** The fields of a `request` line, as they are in its JSON. */
type Fields = Readonly<Record<string, unknown>>;

/** As many characters as tell one request or key of a screen from the others. */
const tailCharacters = 4;
const pathCharacters = 40;

/**
 * One request as one row of a terminal: status, format or route, tokens in and out, credits, milliseconds to the first output
 * and to the end, and the ends of the ids of key and request. What the JSON line has beyond that does not fit 80 columns.
 */
export function requestRow(fields: Fields): string {
  const { failureCode, keyId, method, requestId, route, status, totalMs } = fields;
  const generation = readFields(fields["generation"]);
  const words = [
    status,
    ...(generation === null
      ? [method, route === "" ? pathWords(fields["path"]) : route]
      : generationWords(generation)),
    failureCode,
    ...(generation === null ? [`${whole(totalMs)} ms`] : []),
    tail(keyId),
    tail(requestId),
  ];
  return words
    .filter((word) => word !== null && word !== undefined)
    .map(String)
    .join(" ");
}

function generationWords(generation: Fields): readonly (string | null)[] {
  const {
    chargedNanos,
    firstOutputMs,
    format,
    inputTokens,
    outcome,
    outputTokens,
    streamed,
    totalMs,
  } = generation;
  const first = firstOutputMs === null ? "-" : whole(firstOutputMs);
  return [
    format === "chat-completions" ? "chat" : String(format),
    streamed === true ? "stream" : null,
    outcome === "completed" ? null : String(outcome),
    `${String(inputTokens)} in ${String(outputTokens)} out`,
    credits(chargedNanos),
    `${first}/${whole(totalMs)} ms`,
  ];
}

function readFields(value: unknown): Fields | null {
  return typeof value === "object" && value !== null ? (value as Fields) : null;
}

/** A path that leads nowhere is the caller's own text: what a row has room for. */
function pathWords(path: unknown): string {
  return typeof path === "string" ? path.slice(0, pathCharacters) : "(no route)";
}

function tail(id: unknown): string | null {
  return typeof id === "string" ? `…${id.slice(-tailCharacters)}` : null;
}

function whole(milliseconds: unknown): string {
  return Number(milliseconds).toFixed(0);
}

/** A millionth is what a token costs at the usual prices. */
function credits(nanos: unknown): string {
  return (Number(nanos) / 1e9).toFixed(6);
}
