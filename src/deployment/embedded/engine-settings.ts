/** Variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** What the operator sets of the embedded engine. Numbers that are absent or null are chosen from the machine. */
export interface EmbeddedSettings {
  /** Weights in its folder `models` are used. */
  readonly dataDir: string;
  /** Weights are fetched into its folder `models`; absent: into the one above. */
  readonly cacheDir?: string;
  /** A catalog name, an address or a path of a `.gguf`; null: the catalog's default. */
  readonly model: string | null;
  /** Names of the licenses that the operator accepts. */
  readonly acceptedLicenses?: readonly string[];
  readonly contextTokens?: number | null;
  readonly slots?: number | null;
  readonly threads?: number | null;
  /** false: never a GPU. Otherwise one is used where its build of the library was installed. */
  readonly gpu?: boolean;
  /** Variables of the engine's process, for what it and pip read from them. */
  readonly environment?: Environment;
  /** Silence of the engine during a generation after which it is taken for hung. */
  readonly hangMs?: number;
}

const hangMsDefault = 120_000;

/** After how much silence the engine is replaced. */
export function hangMsOf(settings: EmbeddedSettings): number {
  return settings.hangMs ?? hangMsDefault;
}

/** The engine's command line, which other users of the machine can read: no value that may hold a password is in it. */
export function engineArguments(settings: EmbeddedSettings): readonly string[] {
  const args = ["serve", "--until-stdin-ends", "--port=0", ...folderArguments(settings)];
  const counts = {
    "context-tokens": settings.contextTokens,
    slots: settings.slots,
    threads: settings.threads,
    "hang-seconds": hangMsOf(settings) / 1_000,
  };
  for (const [name, count] of Object.entries(counts)) {
    if (count !== null && count !== undefined) args.push(`--${name}=${String(count)}`);
  }
  if (settings.gpu === false) args.push("--no-gpu");
  return args;
}

/** The part of a command line that says where weights lie, and which may be fetched. */
export function folderArguments(
  settings: Pick<EmbeddedSettings, "acceptedLicenses" | "cacheDir" | "dataDir">,
): string[] {
  const { acceptedLicenses = [], cacheDir, dataDir } = settings;
  return [
    `--data-dir=${dataDir}`,
    `--cache-dir=${cacheDir ?? dataDir}`,
    ...acceptedLicenses.map((name) => `--accept-license=${name}`),
  ];
}

/** The engine's variables: the service's without its own settings, and what is said to the engine alone. */
export function engineEnvironment(
  { environment = {}, model }: Pick<EmbeddedSettings, "environment" | "model">,
  apiKey: string | null,
): Environment {
  return {
    // Node's `fetch` takes no proxy of the environment without the first; the second is what pip trusts besides.
    NODE_USE_ENV_PROXY: "1",
    NODE_EXTRA_CA_CERTS: environment["PIP_CERT"],
    ...environment,
    ...(model !== null && { TRIBUTARY_MODEL: model }),
    ...(apiKey !== null && { TRIBUTARY_ENGINE_API_KEY: apiKey }),
  };
}
