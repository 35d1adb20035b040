import { readDocument } from "./tables.ts";

/** The lines of a document behind a mark `<!-- name -->`. */
export function scriptOf(path: string, name: string): readonly string[] {
  const marked = new RegExp(`<!-- ${name} -->\\n\`\`\`[a-z]+\\n([^]*?)\\n\`\`\``);
  const [, text] = marked.exec(readDocument(path)) ?? [];
  if (text === undefined) throw new Error(`${path} has nothing named ${name}`);
  return text.split("\n");
}
