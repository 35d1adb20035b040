import { describeEngine } from "./engine-laws.ts";
import { openVllm } from "./vllm.ts";

describeEngine({ name: "vLLM", needs: ["python3"], cannot: {}, open: openVllm });
