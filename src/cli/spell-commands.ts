const names = "serve|account|key|usage|receipt|verify|checkpoint|ledger|model|connect|doctor";
const command = new RegExp(`(?<![\\w-])tributary (?=(?:${names})\\b)`, "g");

/** Words that name a command of ours, as it is called here: `tributary` alone is in nobody's path. */
export function spellCommands(text: string, programName: string): string {
  return text.replaceAll(command, `${programName} `);
}

/** What is said below a help text, whose columns the whole name would break. */
export function explainName(programName: string): string {
  return programName === "tributary"
    ? ""
    : `\nHere \`tributary\` is called: ${programName} COMMAND\n`;
}
