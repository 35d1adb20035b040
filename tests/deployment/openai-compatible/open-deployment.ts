import type { Deployment } from "../../../src/deployment/deployment.ts";
import {
  openOpenaiCompatibleDeployment,
  type OpenaiCompatibleParts,
  type OpenaiCompatibleSettings,
} from "../../../src/deployment/openai-compatible/openai-deployment.ts";

/** Opens a deployment at the address, with time limits that no healthy test meets. */
export function openDeployment(
  url: string,
  settings: Partial<OpenaiCompatibleSettings> = {},
  parts: Partial<OpenaiCompatibleParts> = {},
): Deployment {
  let ids = 0;
  return openOpenaiCompatibleDeployment(
    {
      url,
      apiKey: "secret-key",
      model: null,
      contextTokens: null,
      dialect: "auto",
      extraFields: [],
      reasoningField: "reasoning_content",
      connectMs: 2_000,
      firstEventMs: 5_000,
      silenceMs: 5_000,
      tls: { caFile: null, certificateFile: null, keyFile: null },
      ...settings,
    },
    {
      now: Date.now,
      newId: (prefix) => `${prefix}${(ids += 1)}`,
      ...parts,
    },
  );
}

/** Opens a deployment and waits until it was found. */
export async function openReadyDeployment(
  ...given: Parameters<typeof openDeployment>
): Promise<Deployment> {
  const deployment = openDeployment(...given);
  await deployment.whenReady(new AbortController().signal);
  return deployment;
}
