import type { Config } from "../config/config.ts";
import type { DeploymentDescription } from "../deployment/deployment.ts";

/** What the operator calls the model: the catalog's name of the embedded engine's, else the deployment's own. */
export async function nameModel(
  config: Pick<Config, "deployment" | "model">,
  { model }: Pick<DeploymentDescription, "model">,
): Promise<string> {
  if (config.deployment !== null) return model;
  const { findModel } = await import("../deployment/embedded/models.ts");
  return findModel(config.model).name;
}
