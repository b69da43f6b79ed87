"""Writes public.json: what transformers computes with small public checkpoints.

    python public.py > public.json

The file in the repository was made with transformers 5.24.0, tokenizers 0.23.3 and PyTorch 2.15.0.
Weights are numbers that both sides make: see formula.
"""

import json
import os
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import (AutoModelForCausalLM, GPT2Config, LlamaConfig, MistralConfig, MixtralConfig,
                          Qwen2Config, Qwen3Config, Qwen3MoeConfig)

VISIBLE = [*range(33, 127), *range(161, 173), *range(174, 256)]
HIDDEN = [b for b in range(256) if b not in VISIBLE]
LETTERS = {b: chr(b) for b in VISIBLE}
LETTERS.update({b: chr(256 + i) for i, b in enumerate(HIDDEN)})

MERGES = ["l o", "lo w", "Ġ low", "Ã ©", "c a", "ca f", "caf Ã©", "t h", "th e", "Ġ the"]
NAMES = ["<|endoftext|>", "<|im_end|>", "<|eot_id|>", "<s>"]
REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|" + REST

TEXT = ("The café is low, the cafe\u0301 is lower.\n\n  It's 1234 feet;\tthey've <s> low the the "
        "café loweth.\r\nthe low") * 2
PROMPT = "low the cafe\u0301"


def tokenizer(bos=False, qwen=False):
    vocab = {LETTERS[b]: b for b in range(256)}
    for merge in MERGES:
        vocab.setdefault(merge.replace(" ", ""), len(vocab))
    added = [{"id": len(vocab) + i, "content": name, "single_word": False, "lstrip": False,
              "rstrip": False, "normalized": False, "special": True}
             for i, name in enumerate(NAMES)]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
             "use_regex": not qwen}
    post = {"type": "TemplateProcessing", "pair": [
        {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
                       {"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [added[3]["id"]], "tokens": ["<s>"]}}}
    split = {"type": "Split", "pattern": {"Regex": QWEN2}, "behavior": "Isolated",
             "invert": False}
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
            "normalizer": {"type": "NFC"} if qwen else None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]} if qwen
            else level,
            "post_processor": post if bos else None, "decoder": {"type": "ByteLevel",
            "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
            "model": {"type": "BPE", "dropout": 0.0, "unk_token": None,
                      "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": False,
                      "byte_fallback": False, "vocab": vocab, "merges": MERGES}}


def formula(model):
    """The model with the tensors of its checkpoint replaced: element i of the kth by name is a
    hash of both; vectors of norms are near one."""
    with tempfile.TemporaryDirectory() as directory:
        model.save_pretrained(directory)
        path = os.path.join(directory, "model.safetensors")
        tensors = load_file(path)
        for k, (name, p) in enumerate(sorted(tensors.items())):
            x = (torch.arange(p.numel(), dtype=torch.int64) + 65537 * (k + 1)) * 40503 % 2**32
            for factor in (73244475, 295559667):
                x = (x ^ (x >> 16)) * factor % 2**32
            x = (x >> 8).double() / 2**24 - 0.5
            if p.dim() == 1:
                x = 0.5 * x + ("bias" not in name)
            tensors[name] = x.reshape(p.shape).float()
        save_file(tensors, path, {"format": "pt"})
        return AutoModelForCausalLM.from_pretrained(
            directory, experts_implementation="eager").eval()


def scaled(kind, **more):
    return {"rope_theta": 100.0, "rope_type": kind, "factor": 4.0, **more}


SMALL = dict(vocab_size=272, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64)
CASES = [
    ("gpt2", GPT2Config(vocab_size=270, n_positions=64, n_embd=16, n_layer=2, n_head=2,
                        bos_token_id=None), {}, []),
    ("gpt2 in other words", GPT2Config(
        vocab_size=270, n_positions=48, n_embd=16, n_layer=1, n_head=4, n_inner=24,
        activation_function="gelu_fast", reorder_and_upcast_attn=True, bos_token_id=None,
        layer_norm_epsilon=0.01), {}, []),
    ("llama", LlamaConfig(**SMALL, rope_parameters={"rope_theta": 50.0, "rope_type": "default"}),
     {"bos": True}, []),
    ("llama by default", LlamaConfig(**SMALL), {"qwen": True},
     ["rms_norm_eps", "rope_parameters", "tie_word_embeddings", "head_dim", "hidden_act"]),
    ("llama, tied", LlamaConfig(**{**SMALL, "num_key_value_heads": 4}, tie_word_embeddings=True,
                                rms_norm_eps=0.1), {"bos": True, "qwen": True}, []),
    ("llama with biases", LlamaConfig(**SMALL, attention_bias=True, mlp_bias=True, head_dim=6,
                                      rope_parameters=scaled("linear")), {"bos": True}, []),
    ("llama 3", LlamaConfig(**SMALL, rope_parameters=scaled(
        "llama3", low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=16)), {"qwen": True}, []),
    ("llama, dynamic", LlamaConfig(**SMALL, rope_parameters=scaled("dynamic")), {}, []),
    ("llama, yarn", LlamaConfig(**SMALL, rope_parameters=scaled(
        "yarn", original_max_position_embeddings=16)), {"bos": True}, []),
    ("llama, yarn in full", LlamaConfig(**SMALL, rope_parameters=scaled(
        "yarn", original_max_position_embeddings=32, beta_fast=9.0, beta_slow=2.0, mscale=0.7,
        mscale_all_dim=0.4)), {"bos": True}, []),
    ("mistral", MistralConfig(**SMALL, sliding_window=5, head_dim=8), {"bos": True}, []),
    ("mistral without windows", MistralConfig(**SMALL, sliding_window=None), {"bos": True},
     ["head_dim"]),
    ("qwen 2", Qwen2Config(**SMALL, tie_word_embeddings=True), {"qwen": True},
     ["layer_types", "sliding_window", "use_sliding_window", "max_window_layers"]),
    ("qwen 2, windows", Qwen2Config(**SMALL, use_sliding_window=True, sliding_window=6,
                                    max_window_layers=1), {"qwen": True}, []),
    ("qwen 2, windows in other words", Qwen2Config(
        **SMALL, use_sliding_window=True, sliding_window=6, max_window_layers=1), {"qwen": True},
     ["layer_types"]),
    ("qwen 3", Qwen3Config(**SMALL, head_dim=12, tie_word_embeddings=True), {"qwen": True}, []),
    ("qwen 3 with biases", Qwen3Config(**{**SMALL, "num_key_value_heads": 1}, head_dim=4,
                                       attention_bias=True, rope_parameters={
                                           "rope_theta": 1e6, "rope_type": "default"}),
     {"qwen": True}, []),
    ("mixtral", MixtralConfig(**SMALL, num_local_experts=5, num_experts_per_tok=3),
     {"bos": True}, []),
    ("mixtral in other words", MixtralConfig(**SMALL, sliding_window=7, num_local_experts=4),
     {"bos": True}, ["rms_norm_eps", "rope_parameters", "num_experts_per_tok",
                     "router_jitter_noise", "head_dim"]),
    ("qwen 3, experts", Qwen3MoeConfig(**SMALL, num_experts=6, num_experts_per_tok=2, head_dim=8,
                                       moe_intermediate_size=10), {"qwen": True}, []),
    ("qwen 3, experts that add up to one", Qwen3MoeConfig(
        **SMALL, num_experts=4, num_experts_per_tok=4, moe_intermediate_size=8,
        norm_topk_prob=True, tie_word_embeddings=True), {"qwen": True}, []),
]


def loss(model, ids, length):
    """The mean of all tokens after the first, each predicted within its window of length."""
    total, x = 0.0, torch.tensor(ids)
    for at in range(0, len(ids) - 1, length):
        inputs, labels = x[at:at + length], x[at + 1:at + 1 + length]
        logits = model(inputs[None]).logits[0][:len(labels)]
        total += torch.nn.functional.cross_entropy(logits.double(), labels, reduction="sum").item()
    return total / (len(ids) - 1)


def written(model, ids, ends):
    out = model.generate(torch.tensor([ids]), max_new_tokens=12, do_sample=False,
                         eos_token_id=ends, pad_token_id=0)[0][len(ids):].tolist()
    return out


def main():
    rows = []
    for name, config, kind, missing in CASES:
        config.eos_token_id = None
        model = formula(AutoModelForCausalLM.from_config(config))
        peer = Tokenizer.from_str(json.dumps(tokenizer(**kind)))
        ids, prompt = peer.encode(TEXT).ids, peer.encode(PROMPT).ids
        free = written(model, prompt, None)
        ends = [3, next(t for i, t in enumerate(free) if i > 1 and t not in free[:i])]
        said = {"config": [3], "generation": ends} if "gpt2" in name else {"config": ends}
        with tempfile.TemporaryDirectory() as directory:
            model.config.eos_token_id = said["config"] if len(said["config"]) > 1 else 3
            model.config.save_pretrained(directory)
            with open(os.path.join(directory, "config.json"), encoding="utf-8") as f:
                saved = json.load(f)
        for member in missing:
            saved.pop(member, None)
        row = {"name": name, "config": saved, "tokenizer": kind, "loss": 0, "ids": ids,
               "prompt": prompt, "free": free, "ended": written(model, prompt, ends)}
        if "generation" in said:
            row["generation"] = {"eos_token_id": said["generation"]}
        length = getattr(config, "n_positions", 0) or config.max_position_embeddings
        with torch.no_grad():
            row["loss"] = loss(model, ids, length)
        rows.append(json.dumps(row, separators=(",", ":")))
    kinds = {"": tokenizer(), "bos": tokenizer(bos=True), "qwen": tokenizer(qwen=True),
             "bos qwen": tokenizer(bos=True, qwen=True)}
    base = kinds[""]
    parts = {k: {m: v for m, v in t.items() if v != base[m]} for k, t in kinds.items()}
    sys.stdout.write('{"text":' + json.dumps(TEXT) + ',\n"prompt":' + json.dumps(PROMPT) +
                     ',\n"tokenizer":' + json.dumps(base, separators=(",", ":")) + ',\n"parts":' +
                     json.dumps(parts, separators=(",", ":")) + ',\n"cases":[\n' +
                     ",\n".join(rows) + "\n]}\n")


main()
