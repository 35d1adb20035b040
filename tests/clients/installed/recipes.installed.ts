import { dirname } from "node:path";
import { frameworkRecipes, pythonRecipes } from "../../../src/cli/client-recipes.ts";
import { nodeFolder, pythonProgram } from "../../agents/install.ts";
import { describeRecipes, nodeIn } from "../run-recipe.ts";

describeRecipes(
  [
    ["LangChain openai chat", (access) => frameworkRecipes(access)[0]],
    ["LangChain anthropic", (access) => frameworkRecipes(access)[1]],
    ["OpenAI Agents responses", (access) => frameworkRecipes(access)[2]],
  ],
  nodeIn(nodeFolder),
);

describeRecipes(
  [
    ["Python openai chat", (access) => pythonRecipes(access)[0]],
    ["Python anthropic", (access) => pythonRecipes(access)[1]],
  ],
  { command: [pythonProgram, "-c"], folder: dirname(pythonProgram) },
);
