"""GPT-2 and LLaMA in PyTorch, in the layout of public checkpoints.

Says what it is on a line of JSON. Then reads a request a line, an object with a
member "do", and answers with a line; "failed" says what went wrong.
"""
import math
import os
import resource
import time

import torch.nn.functional as F
from torch import nn


class Conv1D(nn.Module):
    """A linear layer with its weight [in out], as GPT-2 has it."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


def attend(q, k, v, past):
    """Causal attention of [batch heads n size], after what is past."""
    if past is not None:
        if past:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        past[:] = [k, v]
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    n, keys = q.shape[2], k.shape[2]
    if hasattr(F, "scaled_dot_product_attention"):
        seen = None if n in (1, keys) else torch.ones(n, keys, dtype=torch.bool).tril(keys - n)
        y = F.scaled_dot_product_attention(q, k, v, seen, is_causal=n == keys)
        return y.transpose(1, 2).flatten(2)
    hidden = torch.ones(n, keys, dtype=torch.bool).triu(1 + keys - n)
    logits = (q @ k.transpose(2, 3) / math.sqrt(q.shape[3])).masked_fill(hidden, -math.inf)
    return (logits.softmax(-1) @ v).transpose(1, 2).flatten(2)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.heads = c["n_head"]
        self.c_attn = Conv1D(c["n_embd"], 3 * c["n_embd"])
        self.c_proj = Conv1D(c["n_embd"], c["n_embd"])

    def forward(self, x, past):
        q, k, v = (z.unflatten(2, (self.heads, -1)).transpose(1, 2)
                   for z in self.c_attn(x).chunk(3, -1))
        return self.c_proj(attend(q, k, v, past))


class MLP(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c_fc = Conv1D(c["n_embd"], c["n_inner"])
        self.c_proj = Conv1D(c["n_inner"], c["n_embd"])

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.ln_1 = nn.LayerNorm(c["n_embd"], c["layer_norm_epsilon"])
        self.attn = Attention(c)
        self.ln_2 = nn.LayerNorm(c["n_embd"], c["layer_norm_epsilon"])
        self.mlp = MLP(c)

    def forward(self, x, position, past):
        x = x + self.attn(self.ln_1(x), past)
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.wte = nn.Embedding(c["vocab_size"], c["n_embd"])
        self.wpe = nn.Embedding(c["n_positions"], c["n_embd"])
        self.h = nn.ModuleList(Block(c) for _ in range(c["n_layer"]))
        self.ln_f = nn.LayerNorm(c["n_embd"], c["layer_norm_epsilon"])

    def forward(self, ids, position=0, past=None):
        x = self.wte(ids) + self.wpe.weight[position:position + ids.shape[1]]
        for i, block in enumerate(self.h):
            x = block(x, position, past and past[i])
        return self.ln_f(x)

    def head(self):
        return self.wte.weight


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


def turn(x, position, base):
    half = x.shape[-1] // 2
    rates = base ** (-torch.arange(half, dtype=torch.float64) / half)
    at = torch.arange(position, position + x.shape[-2], dtype=torch.float64)
    angles = at[:, None] * rates
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class LlamaAttention(nn.Module):
    def __init__(self, c):
        super().__init__()
        width = c["hidden_size"]
        self.heads, self.keys = c["num_attention_heads"], c["num_key_value_heads"]
        self.base, size = c["rope_theta"], width // c["num_attention_heads"]
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, self.keys * size, bias=False)
        self.v_proj = nn.Linear(width, self.keys * size, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x, position, past):
        q, k, v = (z.unflatten(2, (heads, -1)).transpose(1, 2) for z, heads in (
            (self.q_proj(x), self.heads), (self.k_proj(x), self.keys), (self.v_proj(x), self.keys)))
        return self.o_proj(attend(turn(q, position, self.base), turn(k, position, self.base), v, past))


class LlamaMLP(nn.Module):
    def __init__(self, c):
        super().__init__()
        width, hidden = c["hidden_size"], c["intermediate_size"]
        self.gate_proj = nn.Linear(width, hidden, bias=False)
        self.up_proj = nn.Linear(width, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, width, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class LlamaBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        self.self_attn = LlamaAttention(c)
        self.post_attention_layernorm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])
        self.mlp = LlamaMLP(c)

    def forward(self, x, position, past):
        x = x + self.self_attn(self.input_layernorm(x), position, past)
        return x + self.mlp(self.post_attention_layernorm(x))


class LlamaModel(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c["vocab_size"], c["hidden_size"])
        self.layers = nn.ModuleList(LlamaBlock(c) for _ in range(c["num_hidden_layers"]))
        self.norm = RMSNorm(c["hidden_size"], c["rms_norm_eps"])


class Llama(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.model = LlamaModel(c)
        if not c["tie_word_embeddings"]:
            self.lm_head = nn.Linear(c["hidden_size"], c["vocab_size"], bias=False)

    def forward(self, ids, position=0, past=None):
        x = self.model.embed_tokens(ids)
        for i, block in enumerate(self.model.layers):
            x = block(x, position, past and past[i])
        return self.model.norm(x)

    def head(self):
        return self.lm_head.weight if hasattr(self, "lm_head") else self.model.embed_tokens.weight


def build(c):
    with torch.no_grad():
        return GPT2(c) if c["model_type"] == "gpt2" else Llama(c)


CODES = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}


def save(path, tensors, code):
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, x in tensors.items():
        end = at + x.numel() * torch.empty(0, dtype=CODES[code]).element_size()
        header[name] = {"dtype": code, "shape": list(x.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little") + text)
        for x in tensors.values():
            x = x.to(CODES[code]).contiguous().flatten()
            f.write((x if code == "F32" else x.view(torch.int16)).numpy().tobytes())


def load(directory):
    with open(os.path.join(directory, "config.json")) as f:
        model = build(json.load(f))
    with open(os.path.join(directory, "model.safetensors"), "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        header.pop("__metadata__", None)
        state = model.state_dict()
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            x = torch.frombuffer(bytearray(f.read(end - begin)), dtype=CODES[entry["dtype"]])
            state.pop(name).copy_(x.view(entry["shape"]))
    if state:
        raise ValueError("not in the file: %s" % ", ".join(state))
    return model


def make(directory, config, prefix="", buffers=False, code="F32", shards=1, deviation=0.1, seed=1):
    """Writes a network with random weights, as its makers do."""
    torch.manual_seed(seed)
    model = build(config)
    tensors = {}
    for name, x in model.state_dict().items():
        x.add_(torch.randn(x.shape) * deviation) if x.dim() == 1 else x.normal_(0, deviation)
        tensors[prefix + name] = x
    if buffers:
        for i in range(config["n_layer"]):
            n = config["n_positions"]
            tensors["%sh.%d.attn.bias" % (prefix, i)] = torch.ones(1, 1, n, n).tril()
            tensors["%sh.%d.attn.masked_bias" % (prefix, i)] = torch.tensor(-1e4)
        tensors["lm_head.weight"] = model.head().detach()
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "config.json"), "w") as f:
        json.dump(config, f)
    if shards == 1:
        save(os.path.join(directory, "model.safetensors"), tensors, code)
        return {}
    index = {}
    names = list(tensors)
    for i in range(shards):
        file = "model-%05d-of-%05d.safetensors" % (i + 1, shards)
        part = {n: tensors[n] for n in names[i::shards]}
        save(os.path.join(directory, file), part, code)
        index.update(dict.fromkeys(part, file))
    with open(os.path.join(directory, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {}, "weight_map": index}, f)
    return {}


def loss_of(model, tokens, targets):
    logits = model(tokens) @ model.head().t()
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)


def evaluate(directory, tokens, targets):
    with torch.no_grad():
        return {"loss": loss_of(load(directory).double(), torch.tensor(tokens), torch.tensor(targets)).item()}


def peak():
    """The most memory of this process so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def generate(directory, prompt, tokens):
    """The likeliest continuation, token by token, with keys and values kept."""
    model, ids = load(directory), list(prompt)
    past = [[] for _ in range(len(model.h if hasattr(model, "h") else model.model.layers))]
    begin, seconds = 0, []
    with torch.no_grad():
        while len(ids) < len(prompt) + tokens:
            start = time.perf_counter()
            x = model(torch.tensor([ids[begin:]]), begin, past)[:, -1]
            begin = len(ids)
            ids.append((x @ model.head().t()).argmax(-1).item())
            seconds.append(time.perf_counter() - start)
    return {"ids": ids[len(prompt):], "first": seconds[0], "rest": sum(seconds[1:]), "peak": peak()}


def train(directory, tokens, targets, steps, rate, decay):
    """Steps of AdamW on one batch, as the model's training is."""
    model = load(directory)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": decay},
                                   {"params": vectors, "weight_decay": 0}], rate, (0.9, 0.95))
    tokens, targets = torch.tensor(tokens), torch.tensor(targets)
    losses, seconds = [], []
    for _ in range(steps):
        start = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model, tokens, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - start)
    return {"losses": losses, "seconds": seconds, "peak": peak()}


def attention(length, heads, size, rounds):
    """Causal attention and its gradients, of numbers that the other side has too."""
    def numbers(which):
        i = torch.arange(length * heads * size)
        x = ((i * (7 + 2 * which) + which) % 97).float() / 48 - 1
        return x.view(1, length, heads, size).transpose(1, 2)

    q, k, v = (numbers(i).requires_grad_() for i in range(3))
    d, forward, backward = numbers(3), [], []
    for _ in range(rounds):
        with torch.no_grad():
            start = time.perf_counter()
            F.scaled_dot_product_attention(q, k, v, is_causal=True)
            forward.append(time.perf_counter() - start)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        start = time.perf_counter()
        grads = torch.autograd.grad(y, (q, k, v), d)
        backward.append(time.perf_counter() - start)
    return {"forward": sorted(forward)[rounds // 2], "backward": sorted(backward)[rounds // 2],
            "squares": y.double().square().sum().item(),
            "gradSquares": sum(g.double().square().sum().item() for g in grads)}


def answer(line):
    request = json.loads(line)
    do = {"make": make, "evaluate": evaluate, "generate": generate, "train": train,
          "attention": attention}[request.pop("do")]
    torch.set_num_threads(request.pop("threads", 1))
    return do(**request)


serve(answer)
