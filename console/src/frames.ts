/** Takes the text of a stream as it comes, and gives each whole frame of it. */
export function openFrames(): (text: string) => readonly string[] {
  let rest = "";
  return (text) => {
    const parts = (rest + text).split(/\r?\n\r?\n/);
    rest = parts.pop() ?? "";
    return parts.filter((part) => part !== "");
  };
}

/** The data of a frame; null: it has none, or says that the stream is over. */
export function dataOf(frame: string): string | null {
  const lines = frame.split(/\r?\n/).filter((line) => line.startsWith("data:"));
  const data = lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n");
  return lines.length === 0 || data === "[DONE]" ? null : data;
}
