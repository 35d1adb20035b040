import { get } from "node:http";
import { createInterface } from "node:readline";

// `asking-child.ts TOKEN` asks for each line of its input, reads the answer to its end, and says its status.

const [, , token = ""] = process.argv;
for await (const url of createInterface({ input: process.stdin })) {
  const { promise, reject, resolve } = Promise.withResolvers<number | undefined>();
  get(url, { headers: { authorization: `Bearer ${token}` } }, (response) => {
    response
      .on("error", reject)
      .on("end", () => resolve(response.statusCode))
      .resume();
  }).on("error", reject);
  process.stdout.write(`${String(await promise)}\n`);
}
