"""Writes the weights of a GGUF file as a folder that vLLM reads: convert-weights.py GGUF FOLDER TEMPLATE"""

import sys
from os.path import basename, dirname

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

gguf, folder, template = sys.argv[1:]
try:
    from transformers import GgufConfig

    how = {"quantization_config": GgufConfig(dequantize=True)}
except ImportError:
    how = {}
source = {"gguf_file": basename(gguf)}
model = AutoModelForCausalLM.from_pretrained(dirname(gguf), dtype=torch.bfloat16, **source, **how)
tokenizer = AutoTokenizer.from_pretrained(dirname(gguf), **source)
with open(template, encoding="utf-8") as file:
    tokenizer.chat_template = file.read()
model.save_pretrained(folder)
tokenizer.save_pretrained(folder)
