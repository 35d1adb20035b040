import { carried, converted, type EngineLoss, type EngineLosses, lost } from "./engine-losses.ts";
import {
  type Dialect,
  type DialectName,
  dialects,
} from "../../../../src/deployment/openai-compatible/dialect.ts";

/** What becomes of a conversation on its way to an engine that speaks a dialect, read from the dialect itself. */
export function openaiCompatibleLosses(name: DialectName): EngineLosses {
  const dialect = dialects[name];
  return {
    temperature: carried(),
    topP:
      dialect.topPLeast === 0
        ? carried()
        : carried(`0 is sent as ${String(dialect.topPLeast)}, which asks for the same`),
    topK: dialect.topK ? carried("from 1 on; 0 is not sent") : lost(),
    stopSequences: carried(
      dialect.namesStopSequence
        ? "`stop`"
        : "`stop`; the engine does not say that one ended the answer, so Messages says `end_turn`",
    ),
    seed: carried(),
    presencePenalty: carried(),
    frequencyPenalty: carried(),
    reasoningEffort:
      name === "ollama"
        ? efforts(dialect, "; sent for gpt-oss alone, to other models that think only `none`")
        : efforts(dialect),
    responseFormat: carried("`json_object` as `response_format`"),
    laterSystem: carried(),
    orderOfParts: lost("one text, one reasoning, then the calls"),
    earlierReasoning:
      dialect.reasoningField === null
        ? carried("`reasoning_content`, or `reasoning` by `TRIBUTARY_DEPLOYMENT_REASONING_FIELD`")
        : carried(`\`${dialect.reasoningField}\``),
    emptyArguments: dialect.parsesArguments ? converted("`{}`") : carried(),
    brokenArguments: dialect.parsesArguments
      ? converted("an object with the text as `input`")
      : carried(),
    severalCalls: carried(),
    toolWithoutParameters: converted("an object without properties"),
    strictTools: dialect.strict ? carried("`true`") : lost(),
    noTool: dialect.toolChoice ? carried() : converted("the tools are not shown"),
    anyTool: dialect.toolChoice ? carried("`required`") : lost("the engine chooses"),
    oneTool: oneTool(dialect),
    parallelToolCalls: carried(
      dialect.namedToolChoice === "alone"
        ? "where there are tools; the engine may make several all the same"
        : "where there are tools",
    ),
    loneSurrogates: converted("the replacement character"),
  };
}

function oneTool({ namedToolChoice, toolChoice }: Dialect): EngineLoss {
  if (namedToolChoice === "named") return carried();
  return toolChoice
    ? converted("only that tool is shown, and `required`")
    : lost("only that tool is shown; the engine may answer in words");
}

/** Words that stay come first, then what the others become. */
function efforts({ reasoningEfforts }: Dialect, more = ""): EngineLoss {
  const kept: string[] = [];
  const others: string[] = [];
  for (const [asked, told] of Object.entries(reasoningEfforts))
    if (asked === told) kept.push(`\`${asked}\``);
    else others.push(`\`${asked}\` as \`${told}\``);
  return converted([...kept, ...others, "other words are lost"].join(", ") + more);
}
