import { describeEngine } from "./engine-laws.ts";
import { openVllm } from "./vllm.ts";

describeEngine("vLLM", openVllm);
