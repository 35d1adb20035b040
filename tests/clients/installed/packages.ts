/** Clients that `npm run test:clients` installs from npm beside the project. A new version is tried by changing it here. */
export const nodePackages = {
  "@langchain/anthropic": "1.5.11",
  "@langchain/core": "1.2.13",
  "@langchain/openai": "1.6.0",
  "@openai/agents": "0.20.0",
  zod: "4.6.7",
} as const;

/** The same, in a virtual environment of Python. */
export const pythonPackages = { anthropic: "2.11.0", openai: "3.52.0" } as const;
