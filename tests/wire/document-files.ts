/** Where the service reads the document of callers from. */
export const documentFile = new URL("../../src/http/openapi.json", import.meta.url);

/** Where the operators' listener reads its document from. */
export const operatorsDocumentFile = new URL("../../src/operators/openapi.json", import.meta.url);
