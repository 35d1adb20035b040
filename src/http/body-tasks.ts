import type { Prompt, PromptSettings } from "../deployment/deployment.ts";
import type { FailureData } from "../failure.ts";
import type { WireFormatName } from "../formats/wire-format.ts";
import type { SealKey } from "../seal/reasoning-seal.ts";
import type { LabelField } from "./label.ts";
import type { PreparedRequest } from "./prepare-request.ts";

/** What a body worker is asked; the bytes are handed over, not copied. */
export type BodyTask =
  | {
      readonly type: "prepare";
      readonly format: WireFormatName;
      readonly bytes: Uint8Array<ArrayBuffer>;
      readonly accountId: string;
      /** null: the deployment is not known yet; the request is checked only. */
      readonly promptSettings: PromptSettings | null;
      readonly labelFields: readonly LabelField[];
    }
  | {
      readonly type: "count-tokens";
      readonly bytes: Uint8Array<ArrayBuffer>;
      readonly accountId: string;
      /** null: the deployment counts no tokens, so that no prompt is needed. */
      readonly promptSettings: PromptSettings | null;
    };

/** An estimate of a conversation's tokens, and the prompt by which the deployment itself can count them. */
export interface CountedTokens {
  readonly tokens: number;
  readonly prompt: Prompt | null;
}

/** What a body worker answers. */
export type BodyTaskAnswer =
  | { readonly type: "prepared"; readonly prepared: PreparedRequest }
  | { readonly type: "counted"; readonly counted: CountedTokens }
  | { readonly type: "failed"; readonly failure: FailureData };

/** A task on its way to the thread, with the keys of its moment: a rotation may have changed them since the last task. */
export type SealedBodyTask = BodyTask & {
  readonly sealKeys: readonly SealKey[];
};
