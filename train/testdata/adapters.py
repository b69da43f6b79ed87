"""Writes adapters.json: losses of small public checkpoints that adapters of PEFT are trained for.

    python adapters.py > adapters.json

The file in the repository was made with peft 0.21.2, transformers 5.24.0 and PyTorch 2.15.0.
Weights and texts are numbers that both sides make: see number.
"""

import json
import sys

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, Qwen2Config

STEPS, TEXTS, LENGTH = 50, 2, 12
SMALL = dict(vocab_size=60, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
             eos_token_id=None, bos_token_id=None)
CASES = [
    ("gpt2, all layers", GPT2Config(
        vocab_size=60, n_positions=64, n_embd=16, n_layer=2, n_head=2, bos_token_id=None,
        eos_token_id=None, resid_pdrop=0, attn_pdrop=0, embd_pdrop=0),
     dict(r=4, lora_alpha=8, target_modules=["c_attn", "c_proj", "c_fc"], fan_in_fan_out=True)),
    ("llama, two projections", LlamaConfig(**SMALL),
     dict(r=3, lora_alpha=3, target_modules=["q_proj", "v_proj"])),
    ("qwen 2, hidden units", Qwen2Config(**SMALL, tie_word_embeddings=True),
     dict(r=8, lora_alpha=16, target_modules=["mlp.up_proj", "down_proj"])),
]


def number(i, k):
    """Element i of the kth tensor is a hash of both, from -0.5 to 0.5."""
    x = (i + 65537 * k) * 40503 % 2**32
    for factor in (73244475, 295559667):
        x = (x ^ (x >> 16)) * factor % 2**32
    return (x >> 8).double() / 2**24 - 0.5


def formula(named):
    for k, (name, p) in enumerate(sorted(named)):
        x = number(torch.arange(p.numel(), dtype=torch.int64), k + 1)
        if p.dim() == 1:
            x = 0.5 * x + ("bias" not in name)
        p.data.copy_(x.reshape(p.shape).float())


def main():
    rows = []
    for name, config, adapters in CASES:
        model = AutoModelForCausalLM.from_config(config).eval()
        formula(model.named_parameters())
        saved = json.loads(model.config.to_json_string())
        model = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **adapters))
        formula((n, p) for n, p in model.named_parameters() if "lora_A" in n)
        trained = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.AdamW(trained, lr=0.01, weight_decay=0.1)
        losses = []
        for step in range(STEPS):
            at = torch.arange(TEXTS * (LENGTH + 1), dtype=torch.int64)
            x = ((number(at, 1000 + step % 5) + 0.5) * 60).long().reshape(TEXTS, LENGTH + 1)
            logits = model(x[:, :-1]).logits
            loss = torch.nn.functional.cross_entropy(logits.reshape(-1, 60),
                                                     x[:, 1:].reshape(-1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(round(loss.item(), 7))
        rows.append(json.dumps({"name": name, "config": saved, "adapters": adapters,
                                "losses": losses}, separators=(",", ":")))
    sys.stdout.write("[\n" + ",\n".join(rows) + "\n]\n")


main()
