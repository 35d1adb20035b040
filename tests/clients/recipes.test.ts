import { join } from "node:path";
import { sdkRecipes } from "../../src/cli/client-recipes.ts";
import { describeRecipes, nodeIn } from "./run-recipe.ts";

describeRecipes(
  [
    ["openai chat", (access) => sdkRecipes(access)[0]],
    ["anthropic", (access) => sdkRecipes(access)[1]],
  ],
  nodeIn(join(import.meta.dirname, "../..")),
);
