import { expect, test } from "vitest";
import { cutPower, whyNoRecording } from "../ledger/power-cut.ts";

const missing = whyNoRecording();
const unless = missing === null ? "" : ` (left out: ${missing})`;

test.skipIf(missing !== null)(
  `whatever was answered is there after a power cut at a sync, and the ledger verifies${unless}`,
  async () => {
    const { answers, checkpoints, cuts, problems } = await cutPower("full", 1_000);
    expect(problems).toEqual([]);
    expect({ answers: answers >= 990, checkpoints: checkpoints >= 1, cuts: cuts >= 40 }).toEqual({
      answers: true,
      checkpoints: true,
      cuts: true,
    });
  },
);

test.skipIf(missing !== null)(
  `a ledger whose commits are not synced loses answers, and is found out${unless}`,
  async () => {
    const { problems } = await cutPower("normal", 100);
    expect(problems.join("\n")).toContain("seen and not kept: admitted");
  },
);
