import type { ModelAddress } from "./model-address.ts";

/** What the child fetches, once. */
export interface FetchOrder {
  readonly address: ModelAddress;
  /** Folder that holds this model's files and nothing else. */
  readonly folder: string;
  /** Hugging Face's token and the address of a mirror, where they are set. */
  readonly token: string | null;
  readonly endpoint: string | null;
}

/** One file that was fetched. */
export interface FetchedFile {
  readonly name: string;
  readonly bytes: number;
}

/** What the child tells the service. */
export type FetchReport =
  | { readonly type: "progress"; readonly bytes: number; readonly totalBytes: number }
  /** `files` has the one to load first. `sha256`: what the server says of that file, where it says. */
  | {
      readonly type: "fetched";
      readonly files: readonly FetchedFile[];
      readonly sha256: string | null;
    }
  | { readonly type: "failed"; readonly reason: string };
