"""Computes what package nn does with PyTorch: reads cases as JSON, one object with a
field for each, and writes the results and the gradients of each case's tensors."""

import json
import math
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit(77)


def padded(x, t, causal):
    """The mask that is added to logits: padding ids are 0."""
    mask = torch.zeros(x.shape[0], 1, x.shape[1], t["keys"].shape[1])
    mask = mask.masked_fill((t["keys"] == 0)[:, None, None, :], -1e9)
    if causal:
        n = x.shape[1]
        mask = mask + torch.triu(torch.full((n, n), -1e9), 1)
    return mask


def heads(x, n):
    return x.view(x.shape[0], x.shape[1], n, -1).transpose(1, 2)


def rotated(x):
    half = x.shape[-1] // 2
    rates = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    angles = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * rates
    cos, sin = angles.cos().float(), angles.sin().float()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def attend(t, memory, n, groups, mask, rotary=False):
    x = t["x"]
    bias = lambda name: t.get("layer/" + name + "-bias", torch.zeros(1))
    q = heads(x @ t["layer/q"] + bias("q"), n)
    k = heads(memory @ t["layer/k"] + bias("k"), groups)
    v = heads(memory @ t["layer/v"] + bias("v"), groups)
    if rotary:
        q, k = rotated(q), rotated(k)
    k, v = k.repeat_interleave(n // groups, 1), v.repeat_interleave(n // groups, 1)
    a = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]) + mask, -1)
    y = (a @ v).transpose(1, 2).reshape(x.shape[0], x.shape[1], -1)
    return y @ t["layer/o"] + bias("o")


def multihead(t):
    """torch.nn.MultiheadAttention, whose weights are [3·width width]."""
    width = t["x"].shape[-1]
    mask = torch.triu(torch.ones(t["x"].shape[1], t["x"].shape[1]), 1).bool()
    y, _ = F.multi_head_attention_forward(
        *[t["x"].transpose(0, 1)] * 3, width, 2,
        torch.cat([t["layer/" + n].T for n in "qkv"]),
        torch.cat([t["layer/" + n + "-bias"] for n in "qkv"]), None, None, False, 0.0,
        t["layer/o"].T, t["layer/o-bias"], key_padding_mask=t["keys"] == 0, attn_mask=mask,
        need_weights=False)
    return y.transpose(0, 1)


def lstm(t, prefix="layer/", flip=False):
    """torch.nn.LSTM has its gates in the order input, forget, candidate, output."""
    w, b = t[prefix + "weight"], t[prefix + "bias"]
    n = w.shape[1] // 4
    order = lambda w: torch.cat([w[..., i * n:(i + 1) * n] for i in (0, 2, 1, 3)], -1)
    b = b + torch.cat([torch.zeros(2 * n), torch.ones(n), torch.zeros(n)])
    x = t["x"].flip(0) if flip else t["x"]
    inputs = x.shape[-1]
    layer = torch.nn.LSTM(inputs, n)
    names = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
    weights = [order(w[:inputs]).T, order(w[inputs:]).T, order(b), torch.zeros(4 * n)]
    return run(layer, names, weights, x, flip)


def lstm_per_gate(t):
    """The matrices of all gates beside each other are those of lstm."""
    gates = ["layer/%s/" % n for n in ("input", "candidate", "forget", "output")]
    weight = torch.cat([torch.cat([t[g + "weight"], t[g + "state-weight"]]) for g in gates], 1)
    return lstm({"x": t["x"], "layer/weight": weight, "layer/bias": t["layer/bias"]})


def gru(t, prefix="layer/", flip=False):
    n = t[prefix + "state-weight"].shape[0]
    x = t["x"].flip(0) if flip else t["x"]
    layer = torch.nn.GRU(x.shape[-1], n)
    names = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"]
    weights = [t[prefix + "weight"].T, t[prefix + "state-weight"].T, t[prefix + "bias"],
               t[prefix + "state-bias"]]
    return run(layer, names, weights, x, flip)


def run(layer, names, weights, x, flip):
    """Runs a module with weights that are computed, so that gradients reach further."""
    for name, w in zip(names, weights):
        delattr(layer, name)
        setattr(layer, name, w)
    layer._flat_weights = list(weights)
    y, _ = layer(x)
    return y.flip(0) if flip else y


def bidirectional(layer):
    return lambda t: torch.cat([layer(t, "layer/forward/"), layer(t, "layer/backward/", True)], 2)


def norm(t):
    return t["layer/scale"], t["layer/bias"]


def rms(t):
    x = t["x"]
    return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * t["layer/scale"]


def feed_forward(t, act):
    h = act(t["x"] @ t["layer/w0"] + t["layer/b0"])
    if "layer/w2" in t:
        h = h * (t["x"] @ t["layer/w2"] + t["layer/b2"])
    return h @ t["layer/w1"] + t["layer/b1"]


def conv(t, **options):
    return F.conv2d(t["x"], t["layer/filters"], t["layer/bias"], **options)


def labels(t):
    return t["labels"].long().flatten()


def logits(t):
    return t["x"].flatten(0, -2)


LAYERS = {
    "linear": lambda t: t["x"] @ t["layer/weight"] + t["layer/bias"],
    "linear of a row": lambda t: t["x"] @ t["layer/weight"],
    "embedding": lambda t: F.embedding(t["keys"].long(), t["layer/table"]),
    "unembedding": lambda t: t["x"] @ t["layer/table"].T,
    "positions": lambda t: t["x"] + t["layer/table"][:t["x"].shape[1]],
    "conv": lambda t: conv(t, padding=1),
    "conv with stride": lambda t: conv(t, stride=2, padding=1),
    "conv valid": lambda t: conv(t),
    "conv dilated": lambda t: conv(t, dilation=2, padding=2),
    "conv in groups": lambda t: conv(t, padding=1, groups=2),
    "conv transposed": lambda t: F.conv_transpose2d(
        t["x"], t["layer/filters"], t["layer/bias"], stride=2, padding=1),
    "max pool": lambda t: F.max_pool2d(t["x"], 2),
    "average pool": lambda t: F.avg_pool2d(t["x"], 3, stride=1),
    "global mean": lambda t: t["x"].mean((2, 3)),
    "layer norm": lambda t: F.layer_norm(t["x"], t["x"].shape[-1:], *norm(t), 1e-5),
    "rms norm": rms,
    "group norm": lambda t: F.group_norm(t["x"], 2, *norm(t), 1e-5),
    "group norm of one": lambda t: F.group_norm(t["x"], 1, *norm(t), 1e-5),
    "batch norm": lambda t: F.batch_norm(t["x"], None, None, *norm(t), True, 0.1, 1e-5),
    "batch norm of rows": lambda t: F.batch_norm(t["x"], None, None, *norm(t), True, 0.1, 1e-5),
    "batch norm evaluated": lambda t: F.batch_norm(
        t["x"], t["layer/mean"], t["layer/variance"], *norm(t), False, 0.1, 1e-5),
    "attention": lambda t: attend(t, t["x"], 2, 2, torch.zeros(1)),
    "attention causal and padded": lambda t: attend(t, t["x"], 2, 2, padded(t["x"], t, True)),
    "attention of PyTorch": multihead,
    "attention to memory": lambda t: attend(t, t["memory"], 2, 2, padded(t["x"], t, False)),
    "attention of groups": lambda t: attend(t, t["x"], 4, 2, padded(t["x"], t, True)),
    "attention rotary": lambda t: attend(t, t["x"], 4, 1, torch.zeros(1), True),
    "feed-forward": lambda t: feed_forward(t, F.relu),
    "feed-forward gelu": lambda t: feed_forward(t, F.gelu),
    "feed-forward swiglu": lambda t: feed_forward(t, F.silu),
    "lstm": lstm,
    "lstm unrolled": lstm,
    "lstm both ways": bidirectional(lstm),
    "lstm unrolled both ways": bidirectional(lstm),
    "lstm per gate": lstm_per_gate,
    "gru": gru,
    "gru both ways": bidirectional(gru),
    "cross-entropy": lambda t: F.cross_entropy(logits(t), labels(t)),
    "cross-entropy smoothed": lambda t: F.cross_entropy(logits(t), labels(t), label_smoothing=0.1),
    "cross-entropy ignoring": lambda t: F.cross_entropy(
        logits(t), labels(t), ignore_index=2, label_smoothing=0.1),
    "cross-entropy of classes": lambda t: F.cross_entropy(
        logits(t), labels(t), t["classes"].detach(), ignore_index=0, label_smoothing=0.1),
    "cross-entropy weighted": lambda t: (F.cross_entropy(
        logits(t), labels(t), reduction="none") * t["weights"].flatten()).sum()
        / t["weights"].sum(),
    "mse": lambda t: F.mse_loss(t["x"], t["y"]),
    "l1": lambda t: F.l1_loss(t["x"], t["y"]),
    "huber": lambda t: F.huber_loss(t["x"], t["y"], delta=0.7),
    "binary cross-entropy": lambda t: F.binary_cross_entropy_with_logits(t["x"], t["y"]),
}


def layer(name, tensors, weights):
    t = {}
    for k, v in tensors.items():
        d = torch.float32 if v["float"] else torch.int32
        t[k] = torch.tensor(v["data"], dtype=d).reshape(v["sizes"])
        t[k].requires_grad = v["float"] and k not in ("layer/mean", "layer/variance")
    y = LAYERS[name](t)
    (y * torch.tensor(weights).reshape(y.shape)).sum().backward()
    grads = {k: v.grad.flatten().tolist() for k, v in t.items() if v.grad is not None}
    return {"result": y.flatten().tolist(), "gradients": grads}


OPTIMIZERS = {
    "sgd": lambda p, r: torch.optim.SGD(p, r),
    "sgd decayed": lambda p, r: torch.optim.SGD(
        [{"params": p[:1], "weight_decay": 0.3}, {"params": p[1:]}], r),
    "momentum": lambda p, r: torch.optim.SGD(p, r, 0.8),
    "nesterov": lambda p, r: torch.optim.SGD(p, r, 0.8, nesterov=True),
    "adam": lambda p, r: torch.optim.Adam(p, r),
    "adamw": lambda p, r: torch.optim.AdamW(
        [{"params": p[:1], "weight_decay": 0.1}, {"params": p[1:], "weight_decay": 0.0}], r,
        (0.8, 0.95)),
    "clipped": lambda p, r: torch.optim.Adam(p, r),
    "accumulated": lambda p, r: torch.optim.Adam(p, r),
    "accumulated and clipped": lambda p, r: torch.optim.SGD(p, r, 0.9),
}


def training(name, case):
    x, y = torch.tensor(case["x"]), torch.tensor(case["y"])
    w, b = (torch.tensor(case[k], requires_grad=True) for k in ("w", "b"))
    optimizer = OPTIMIZERS[name]([w, b], case["rate"])
    every = case["accumulate"]
    for step in range(len(x)):
        loss = F.mse_loss(x[step] @ w + b, y[step]) / every
        loss.backward()
        if (step + 1) % every == 0:
            if case["clip"] > 0:
                torch.nn.utils.clip_grad_norm_([w, b], case["clip"])
            optimizer.step()
            optimizer.zero_grad()
    return {"result": w.flatten().tolist() + b.flatten().tolist()}


def main():
    torch.set_num_threads(1)
    cases = json.load(sys.stdin)
    out = {}
    for name, case in cases["layers"].items():
        out[name] = layer(name, case["tensors"], case["weights"])
    for name, case in cases["training"].items():
        out[name] = training(name, case)
    json.dump(out, sys.stdout)


main()
