import { readFileSync } from "node:fs";
import { join } from "node:path";
import { startRecordingProxy } from "../agents/record-proxy.ts";
import { isRecord } from "../cases/files.ts";
import { type RecordedRequest, type Step, textAnswer } from "../doubles/scripted-deployment.ts";
import { startService } from "../service/start-service.ts";
import type { RecordedCall, Recording } from "./recording.ts";
import type { Sdk } from "./sdk-programs.ts";
import { openStableForm } from "./stable-form.ts";

/** Lets an SDK do everything it is recorded at and returns what it sent meanwhile. */
export async function recordSdk(sdk: Sdk): Promise<Recording> {
  await using service = await startService();
  await using proxy = await startRecordingProxy(service.url);
  service.deployment.answerBy(answer);
  const versions = sdk.packages.map(installedVersion);
  const form = openStableForm([
    [proxy.url, "<url>"],
    [new URL(proxy.url).host, "<host>"],
    [service.key, "<key>"],
    ...versions.map((version) => [version, "<version>"] as const),
  ]);
  const calls: RecordedCall[] = [];
  for (const [what, ask] of Object.entries(sdk.asks({ url: proxy.url, key: service.key }))) {
    const before = proxy.captured.length;
    await ask();
    for (const [index, request] of proxy.captured.slice(before).entries()) {
      calls.push(form.call(index === 0 ? what : `${what}, request ${String(index + 1)}`, request));
    }
  }
  return { client: sdk.name, version: versions.join(" / "), calls };
}

/** The first tool is called once, then there is a text. */
function answer({ json }: RecordedRequest): readonly Step[] {
  const { messages, tools } = isRecord(json) ? json : {};
  const called =
    Array.isArray(messages) && messages.some((one) => isRecord(one) && one["role"] === "tool");
  const thought = { reasoning: "A thought." };
  if (!Array.isArray(tools) || called) return textAnswer("It is sunny.", thought);
  const call = { id: "call_rome_1", name: "weather", arguments: '{"city":"Rome"}' };
  return textAnswer("", { ...thought, toolCalls: [call] });
}

/** The version of a package that is installed here. */
export function installedVersion(name: string): string {
  const file = join(import.meta.dirname, "../../node_modules", name, "package.json");
  const manifest: unknown = JSON.parse(readFileSync(file, "utf8"));
  if (!isRecord(manifest)) throw new Error(`no manifest of ${name}`);
  return String(manifest["version"]);
}
