import { mkdtempSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { findCatalogEntry } from "../../engine/src/catalog.ts";
import { findWeights } from "../../engine/src/weights.ts";
import { answer, openEmbedded, until } from "../engine/ask.ts";

// Whoever runs this accepts the model's terms for it.
const isAccepted = (process.env["TRIBUTARY_ACCEPT_LICENSE"] ?? "").split(",").includes("gemma");

it.skipIf(!isAccepted)(
  "Gemma comes in its four parts, is what the catalog says, and writes",
  async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "gemma-"));
    try {
      await using deployment = await openEmbedded({
        dataDir,
        model: "gemma-3-270m",
        acceptedLicenses: ["gemma"],
        slots: 1,
        environment: process.env,
      });
      await until(() => deployment.describe().ready, 240_000);
      const entry = findCatalogEntry("gemma-3-270m");
      expect(entry && (await findWeights(entry, { dataDir, cacheDir: dataDir }))).not.toBeNull();
      const { text } = await answer(deployment, {
        user: "One, two, three, four,",
        outputTokensMax: 16,
        options: { temperature: 0 },
      });
      expect(text.trim().length).toBeGreaterThan(3);
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  },
  300_000,
);
