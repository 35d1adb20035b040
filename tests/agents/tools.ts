import { isRecord } from "../cases/files.ts";
import type { RecordedRequest } from "../doubles/scripted-deployment.ts";

/** One call that the script makes. */
export interface ScriptedCall {
  readonly name: string;
  readonly arguments: string;
}

/** A tool as the deployment was offered it. */
interface OfferedTool {
  readonly name: string;
  readonly properties: readonly string[];
  readonly required: readonly string[];
}

/** The tools of a request to the deployment. */
export function offeredTools(request: RecordedRequest): readonly OfferedTool[] {
  const { tools } = isRecord(request.json) ? request.json : {};
  if (!Array.isArray(tools)) return [];
  return tools.map((tool: unknown) => {
    const described = isRecord(tool) && isRecord(tool["function"]) ? tool["function"] : {};
    const { name, parameters } = described;
    if (typeof name !== "string" || !isRecord(parameters)) {
      throw new Error(`a tool without name or parameters: ${JSON.stringify(tool)}`);
    }
    const { properties, required } = parameters;
    return {
      name,
      properties: isRecord(properties) ? Object.keys(properties) : [],
      required: Array.isArray(required) ? required.map(String) : [],
    };
  });
}

// Each agent has its own names for the same things.
const readers = ["Read", "read"];
const editors = ["Edit", "edit"];
const shells = ["Bash", "bash", "exec_command", "shell_command", "shell"];
// Runs a program in which the other tools are functions.
const programRunners = ["functions__exec"];
const patchers = ["apply_patch"];

/** The texts of a request's tool results, in order. */
export function toolResults(request: RecordedRequest): readonly string[] {
  return messagesOf(request)
    .filter((message) => message["role"] === "tool")
    .map(({ content }) => (typeof content === "string" ? content : JSON.stringify(content)));
}

/** The messages of a request to the deployment. */
export function messagesOf(request: RecordedRequest): readonly Record<string, unknown>[] {
  const { messages } = isRecord(request.json) ? request.json : {};
  return Array.isArray(messages) ? messages.filter(isRecord) : [];
}

/** A call that reads a file: with a tool for it, else in the shell. */
export function callToRead(tools: readonly OfferedTool[], path: string): ScriptedCall {
  const reader = find(tools, readers);
  if (reader === undefined) return callToRun(tools, `cat ${path}`);
  return call(reader, { path });
}

/** A call that runs a command. */
export function callToRun(tools: readonly OfferedTool[], command: string): ScriptedCall {
  const shell = find(tools, shells);
  const runner = find(tools, programRunners);
  if (shell === undefined && runner !== undefined) {
    const cmd = JSON.stringify({ cmd: command });
    return call(runner, { program: `text(JSON.stringify(await tools.exec_command(${cmd})));` });
  }
  if (shell === undefined) {
    throw new Error(`no tool runs a command: ${tools.map(({ name }) => name).join(", ")}`);
  }
  return call(shell, { command });
}

/** A call that replaces a line of a file: with a tool for it, with a patch, else in the shell. */
export function callToEdit(
  tools: readonly OfferedTool[],
  edit: { readonly path: string; readonly from: string; readonly to: string },
): ScriptedCall {
  const editor = find(tools, editors);
  if (editor !== undefined) return call(editor, edit);
  const patcher = find(tools, patchers);
  if (patcher === undefined) {
    return callToRun(tools, `sed -i 's/^${edit.from}$/${edit.to}/' ${edit.path}`);
  }
  const lines = ["*** Begin Patch", `*** Update File: ${edit.path}`, "@@"];
  lines.push(`-${edit.from}`, `+${edit.to}`, "*** End Patch");
  return call(patcher, { patch: lines.join("\n") });
}

function find(tools: readonly OfferedTool[], names: readonly string[]): OfferedTool | undefined {
  return tools.find(({ name }) => names.includes(name));
}

/** What the agents call an argument. */
const synonyms: Readonly<Record<string, readonly string[]>> = {
  path: ["file_path", "filePath", "path"],
  command: ["command", "cmd"],
  from: ["old_string", "oldString"],
  to: ["new_string", "newString"],
  program: ["input"],
  patch: ["input", "patch", "patchText"],
};

function call(tool: OfferedTool, values: Readonly<Record<string, string>>): ScriptedCall {
  const given: Record<string, string> = {};
  for (const [meaning, value] of Object.entries(values)) {
    const name = synonyms[meaning]?.find((synonym) => tool.properties.includes(synonym));
    if (name === undefined) {
      throw new Error(`${tool.name} takes no ${meaning}: ${tool.properties.join(", ")}`);
    }
    given[name] = value;
  }
  for (const name of tool.required) {
    if (name in given) continue;
    if (name !== "description") throw new Error(`${tool.name} needs ${name}`);
    given[name] = "Does what was asked";
  }
  return { name: tool.name, arguments: JSON.stringify(given) };
}
