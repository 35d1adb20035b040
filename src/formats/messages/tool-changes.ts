import { Failure } from "../../failure.ts";
import { type Fields, readObject, readOneOf, readString } from "../read-fields.ts";

/** A block of a system message that offers a tool from there on, or withdraws it. */
export type ToolChangeType = "tool_addition" | "tool_removal";

/**
 * The line of text that a tool change becomes. All of `tools` is offered from the beginning, deferred tools too, and stays
 * in place, or the engine's prefix cache would be lost with every change. null: the tool is an MCP server's, which are
 * not offered.
 */
export function readToolChange(type: ToolChangeType, block: Fields, param: string): string | null {
  const tool = readObject(block["tool"], `${param}.tool`);
  const kind = readOneOf(tool["type"], `${param}.tool.type`, [
    "tool_reference",
    "mcp_tool_reference",
    "mcp_toolset_reference",
    "tool_definition",
  ]);
  switch (kind) {
    case "tool_reference": {
      const name = readString(tool["name"], `${param}.tool.name`);
      return type === "tool_addition"
        ? `Tool available: ${name}`
        : `Tool no longer available, do not call it: ${name}`;
    }
    case "mcp_tool_reference":
    case "mcp_toolset_reference":
      return null;
    case "tool_definition":
      throw new Failure(
        "not_offered",
        `${param}.tool: tools are not defined inside messages here. Put every tool into tools.`,
        { param: `${param}.tool` },
      );
    default:
      return kind satisfies never;
  }
}
