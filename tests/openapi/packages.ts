/** Tools for OpenAPI documents that `npm run test:openapi` installs beside the project. A new version is tried by changing it here. */
export const nodeTools = {
  "@redocly/cli": "2.77.0",
  "openapi-fetch": "0.17.0",
  "openapi-typescript": "7.13.0",
  typescript: "5.9.3",
} as const;

/** The same, in a virtual environment of Python. */
export const pythonTools = { "openapi-python-client": "0.29.1", schemathesis: "4.32.5" } as const;
