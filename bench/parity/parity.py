"""The models of this comparison in PyTorch, and their gradients.

Says what it is on a line of JSON. Then reads the path of a safetensors file a
line from standard input, which has a model's parameters, a batch, the noise, and
the loss and gradients that gomem computed of them, and answers with a line:

  loss       in 64-bit floats, the truth
  gradients  for each its name, and how far gomem and PyTorch in 32 bits are from
             the truth, relative to its largest element
  failed     instead of these: what went wrong

A line {"path", "threads", "compiled"} takes such a file's model for training, and the line
"step" trains it one step: seconds, loss.

A model is a function of its configuration, parameters w and batch x, written with
PyTorch's own operators wherever it has one.
"""
import math
import time

import torch.nn.functional as F


class Tensors:
    """Named tensors below a scope."""

    def __init__(self, all, scope=""):
        self.all, self.scope = all, scope

    def __getitem__(self, name):
        return self.all[self.scope + name]

    def __contains__(self, name):
        return self.scope + name in self.all

    def at(self, *scope):
        return Tensors(self.all, self.scope + "".join("%s/" % s for s in scope))

    def names(self):
        """Those below the scope, in the file's order."""
        return [n[len(self.scope):] for n in self.all if n.startswith(self.scope)]

    def blocks(self):
        """The scopes of convolutions that come first in a block, in order."""
        end = "/conv1/filters"
        return [n[: -len(end)] for n in self.names() if n.endswith(end)]


def texts_loss(logits, target, smoothing):
    return F.cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=0, label_smoothing=smoothing)


def shifted(target):
    return F.pad(target[:, :-1], (1, 0))


def future(length):
    """Where a position may not look: at those after it."""
    return torch.ones(length, length, dtype=torch.bool).triu(1)


# Transformer


def positions(length, width, like):
    half = width // 2
    rates = torch.exp(-math.log(1e4) / max(1, half - 1) * torch.arange(half, dtype=torch.float64))
    angles = torch.arange(length, dtype=torch.float64)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], 1).to(like.dtype)


def layer_norm(x, w):
    return F.layer_norm(x, x.shape[-1:], w["norm/scale"], w["norm/bias"], 1e-6)


def attention(c, w, x, memory, padding, causal):
    y = layer_norm(x, w).transpose(0, 1)
    m = y if memory is None else memory.transpose(0, 1)
    out, _ = F.multi_head_attention_forward(
        y, m, m, c["Width"], c["Heads"], None, None, None, None, False, 0.0, w["o"].t(), None,
        key_padding_mask=padding, attn_mask=causal, need_weights=False,
        use_separate_proj_weight=True, q_proj_weight=w["q"].t(), k_proj_weight=w["k"].t(), v_proj_weight=w["v"].t())
    return x + out.transpose(0, 1)


def feed_forward(w, x):
    y = F.relu(F.linear(layer_norm(x, w), w["w0"].t(), w["b0"]))
    return x + F.linear(y, w["w1"].t(), w["b1"])


def transformer(c, w, x, noise):
    source, target, table = x["source"], x["target"], w["embedding"]
    padding, causal = source == 0, future(c["Length"])

    def embed(ids):
        return F.embedding(ids, table) * math.sqrt(c["Width"]) + positions(c["Length"], c["Width"], table)

    memory = embed(source) + w["target-space"][0]
    y = embed(shifted(target))
    for i in range(c["Layers"]):
        layer = w.at("enc", i)
        memory = attention(c, layer.at("att"), memory, None, padding, None)
        memory = feed_forward(layer.at("ff"), memory)
    memory = layer_norm(memory, w.at("enc"))
    for i in range(c["Layers"]):
        layer = w.at("dec", i)
        y = attention(c, layer.at("att"), y, None, None, causal)
        y = attention(c, layer.at("cross"), y, memory, padding, None)
        y = feed_forward(layer.at("ff"), y)
    return texts_loss(F.linear(layer_norm(y, w.at("dec")), table), target, c["Smoothing"])


# Decoder-only


def turned(x, base):
    """Rotary positions: element i of a half is turned with element i of the other."""
    half = x.shape[-1] // 2
    rates = base ** (-torch.arange(half, dtype=torch.float64) / half)
    angles = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * rates
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def attended(q, k, v):
    """Causal attention of [batch length heads size], flattened again."""
    q, k, v = (z.transpose(1, 2) for z in (q, k, v))
    k, v = (z.repeat_interleave(q.shape[1] // z.shape[1], 1) for z in (k, v))
    logits = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
    weights = logits.masked_fill(future(q.shape[2]), -math.inf).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2)


def gpt2_block(c, w, x):
    def norm(name, x):
        return F.layer_norm(x, x.shape[-1:], w[name + "/scale"], w[name + "/bias"], c["Eps"])

    def linear(name, x):
        return F.linear(x, w[name + "/weight"].t(), w[name + "/bias"])

    heads = linear("attn/c_attn", norm("ln_1", x)).chunk(3, -1)
    y = attended(*(z.unflatten(2, (c["Heads"], -1)) for z in heads))
    x = x + linear("attn/c_proj", y)
    y = F.gelu(linear("mlp/c_fc", norm("ln_2", x)), approximate="tanh")
    return x + linear("mlp/c_proj", y)


def llama_norm(c, x, weight):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + c["Eps"]) * weight


def llama_block(c, w, x):
    def linear(name, x):
        return F.linear(x, w[name + "/weight"])

    y = llama_norm(c, x, w["input_layernorm/weight"])
    q, k, v = (linear("self_attn/%s_proj" % n, y).unflatten(2, (heads, -1))
               for n, heads in (("q", c["Heads"]), ("k", c["KeyHeads"]), ("v", c["KeyHeads"])))
    q, k = (turned(z.transpose(1, 2), c["RotaryBase"]).transpose(1, 2) for z in (q, k))
    x = x + linear("self_attn/o_proj", attended(q, k, v))
    y = llama_norm(c, x, w["post_attention_layernorm/weight"])
    y = F.silu(linear("mlp/gate_proj", y)) * linear("mlp/up_proj", y)
    return x + linear("mlp/down_proj", y)


def gpt(c, w, x, noise):
    if c["Blocks"] == "gpt2":
        table = w["wte/weight"]
        y = F.embedding(x["tokens"], table) + w["wpe/weight"][:c["Length"]]
        for i in range(c["Layers"]):
            y = gpt2_block(c, w.at("h", i), y)
        y = F.layer_norm(y, y.shape[-1:], w["ln_f/scale"], w["ln_f/bias"], c["Eps"])
    else:
        table = w["model/embed_tokens/weight"]
        y = F.embedding(x["tokens"], table)
        for i in range(c["Layers"]):
            y = llama_block(c, w.at("model", "layers", i), y)
        y = llama_norm(c, y, w["model/norm/weight"])
    logits = F.linear(y, w["lm_head/weight"] if c["Untied"] else table)
    return F.cross_entropy(logits.flatten(0, 1), x["targets"].flatten(), ignore_index=-1)


# Mixture of experts


def rms_norm(x, w):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w["norm"]


def plain_attention(c, w, x, memory, mask):
    """Attention without division by the root of the head size, and without biases."""
    y = rms_norm(x, w)
    memory = y if memory is None else memory
    q, k, v, o = w["qkvo"]

    def heads(z):
        return z.unflatten(2, (c["Heads"], c["HeadWidth"])).transpose(1, 2)

    a = heads(y @ q) @ heads(memory @ k).transpose(2, 3)
    a = a.masked_fill(mask, -math.inf).softmax(-1)
    return x + F.linear((a @ heads(memory @ v)).transpose(1, 2).flatten(2), o)


def queue(choices, capacity, experts):
    """Which choices [tokens 2] of a group find room: all first ones queue first."""
    kept = torch.zeros_like(choices, dtype=torch.bool)
    count = [0] * experts
    for k in range(2):
        for i, e in enumerate(choices[:, k].tolist()):
            kept[i, k] = count[e] < capacity
            count[e] += 1
    return kept


def expert(c, w, i):
    if c["Stacked"]:
        return w["experts/w0"][i], w["experts/w1"][i]
    return w["expert%d/w0" % i], w["expert%d/w1" % i]


def mixture(c, w, x, balance):
    experts, tokens = c["Experts"], rms_norm(x, w).flatten(0, 1)
    groups = -(-len(tokens) // c["Group"])
    while len(tokens) % groups:
        groups += 1
    size = len(tokens) // groups
    gates = (tokens @ w["gate"]).softmax(-1)
    best = gates.topk(2)
    first = F.one_hot(best.indices[:, 0], experts).to(gates.dtype)
    means = [z.unflatten(0, (groups, size)).mean(1) for z in (gates, first)]
    balance.append(experts * experts * (means[0] * means[1]).mean())
    weights = best.values / best.values.sum(-1, keepdim=True)
    kept = torch.ones_like(best.indices, dtype=torch.bool)
    if not c["Sparse"]:
        capacity = min(size, int(size * c["CapacityTrain"] / experts))
        kept = torch.cat([queue(g, capacity, experts) for g in best.indices.split(size)])
    out = torch.zeros_like(tokens)
    for e in range(experts):
        w0, w1 = expert(c, w, e)
        rows, choice = torch.nonzero((best.indices == e) & kept, as_tuple=True)
        y = F.relu(tokens[rows] @ w0) @ w1
        out = out.index_add(0, rows, weights[rows, choice, None] * y)
    return x + out.view_as(x)


def moe(c, w, x, noise):
    source, target, table = x["source"], x["target"], w["embedding"]
    padding, causal = (source == 0)[:, None, None], future(c["Length"])
    balance = []

    def embed(ids):
        return F.embedding(ids, table) + w["positional"]

    memory, y = embed(source), embed(shifted(target))
    for i in range(c["Layers"]):
        layer = w.at("enc", i)
        memory = plain_attention(c, layer.at("att"), memory, None, padding)
        memory = mixture(c, layer.at("moe"), memory, balance)
    memory = rms_norm(memory, w.at("enc"))
    for i in range(c["Layers"]):
        layer = w.at("dec", i)
        y = plain_attention(c, layer.at("att"), y, None, causal)
        y = plain_attention(c, layer.at("cross"), y, memory, padding)
        y = mixture(c, layer.at("moe"), y, balance)
    logits = F.linear(rms_norm(y, w.at("dec")) / math.sqrt(c["Width"]), table)
    return texts_loss(logits, target, c["Smoothing"]) + c["AuxWeight"] * sum(balance)


# Residual network


def pad_as_tensorflow(x, window, stride, value=0.0):
    """TensorFlow's padding "SAME": the odd row and column come last."""
    n = x.shape[-1]
    total = max(0, (-(-n // stride) - 1) * stride + window - n)
    side = (total // 2, total - total // 2)
    return F.pad(x, side + side, value=value)


def batch_norm(x, w):
    return F.batch_norm(x, None, None, w["scale"], w["bias"], training=True, eps=1e-5)


def filtered(x, w, stride=1):
    filters = w["filters"]
    bias = w["bias"] if "bias" in w else None
    return F.conv2d(x, filters, bias, stride=stride, padding=filters.shape[-1] // 2)


def original(w, x, stride):
    shortcut = x
    if "project/filters" in w:
        shortcut = batch_norm(filtered(x, w.at("project"), stride), w.at("project", "norm"))
    y = F.relu(batch_norm(filtered(x, w.at("conv1")), w.at("norm1")))
    y = F.relu(batch_norm(filtered(y, w.at("conv2"), stride), w.at("norm2")))
    return F.relu(batch_norm(filtered(y, w.at("conv3")), w.at("norm3")) + shortcut)


def preactivated(w, x, stride):
    y = F.relu(batch_norm(x, w.at("norm1")))
    shortcut = filtered(y, w.at("project"), stride) if "project/filters" in w else x
    y = F.relu(batch_norm(filtered(y, w.at("conv1")), w.at("norm2")))
    y = F.relu(batch_norm(filtered(y, w.at("conv2"), stride), w.at("norm3")))
    return filtered(y, w.at("conv3")) + shortcut


def resnet(c, w, x, noise):
    y = filtered(x["images"], w.at("stem"), 2)
    if c["Version"] == 1:
        y = F.relu(batch_norm(y, w.at("stem", "norm")))
    y = F.max_pool2d(pad_as_tensorflow(y, 3, 2, -math.inf), 3, 2)
    for name in w.blocks():
        stride = 1 if name.startswith("stage1/") or not name.endswith("/0") else 2
        y = (original if c["Version"] == 1 else preactivated)(w.at(name), y, stride)
    if c["Version"] == 2:
        y = F.relu(batch_norm(y, w.at("norm")))
    y = F.adaptive_avg_pool2d(y, 1).flatten(1)
    return F.cross_entropy(F.linear(y, w["dense/weights"].t(), w["dense/bias"]), x["labels"], ignore_index=0)


# Wasserstein networks with gradient penalty


def image_norm(x, w):
    """A layer norm over an image, with a scale and a bias for each channel."""
    return F.group_norm(x, 1, w["scale"], w["bias"], 1e-5)


def depth_to_space(x):
    """TensorFlow's: the place within a block is the outer part of the channels."""
    return F.pixel_shuffle(x.unflatten(1, (4, -1)).transpose(1, 2).flatten(1, 2), 2)


def narrow(w, x, change, norm):
    shortcut, y = x, filtered(F.relu(x), w.at("conv1"))
    y, middle = F.relu(y), w.at("conv2")
    if change == "up":
        shortcut = depth_to_space(filtered(x, w.at("shortcut")))
        size = 2 * x.shape[-1]
        y = F.conv_transpose2d(y, middle["filters"], middle["bias"], stride=2)[..., :size, :size]
    elif change == "down":
        shortcut = filtered(x, w.at("shortcut"), 2)
        y = F.conv2d(pad_as_tensorflow(y, 3, 2), middle["filters"], middle["bias"], stride=2)
    else:
        y = filtered(y, middle)
    y = norm(filtered(F.relu(y), w.at("conv3")), w.at("norm"))
    return shortcut + 0.3 * y


def wide(w, x, change, norm):
    shortcut, y = x, F.relu(norm(x, w.at("norm1")))
    if change == "up":
        shortcut, y = (F.interpolate(z, scale_factor=2, mode="nearest") for z in (shortcut, y))
    y = filtered(y, w.at("conv1"))
    y = filtered(F.relu(norm(y, w.at("norm2"))), w.at("conv2"))
    if change == "down":
        shortcut, y = F.avg_pool2d(shortcut, 2), F.avg_pool2d(y, 2)
    return filtered(shortcut, w.at("shortcut")) + y


def adversary(c, w, x, norm):
    block = wide if c["Nets"] == "good" else narrow
    for name in w.blocks():
        x = block(w.at(name), x, name.split("/")[-1], norm)
    return x


def affine(x, w):
    return F.linear(x, w["weights"].t(), w["bias"])


def generate(c, w, z):
    side = c["Pixels"] // 16
    y = adversary(c, w, affine(z, w.at("dense")).unflatten(1, (-1, side, side)), batch_norm)
    if c["Nets"] == "good":
        return torch.tanh(filtered(F.relu(batch_norm(y, w.at("norm"))), w.at("conv")))
    return torch.tanh(filtered(y, w.at("conv")) / 5)


def judge(c, w, images):
    y = adversary(c, w, filtered(images, w.at("conv")), image_norm)
    y = affine(y.flatten(1), w.at("dense")).flatten()
    return y if c["Nets"] == "good" else y / 5


def wgan_generator(c, w, x, noise):
    fakes = generate(c, w.at("generator"), noise["random-normal"])
    return -judge(c, w.at("critic"), fakes).mean()


def wgan_critic(c, w, x, noise):
    real, critic = x["images"], w.at("critic")
    fakes = generate(c, w.at("generator"), noise["random-normal"])
    between = torch.lerp(real, fakes, noise["random-uniform"]).requires_grad_()
    slope, = torch.autograd.grad(judge(c, critic, between).sum(), between, create_graph=True)
    penalty = (slope.flatten(1).norm(2, dim=1) - 1).square().mean()
    return judge(c, critic, fakes).mean() - judge(c, critic, real).mean() + c["Penalty"] * penalty


# Recogniser of speech


def lstm(x, weight, bias):
    """PyTorch's LSTM, whose gates are i, f, j, o where gomem's are i, j, f, o."""
    n = x.shape[-1]
    order = [0, 2, 1, 3]
    rows = torch.cat([weight.t().split(n)[k] for k in order])
    bias = torch.cat([bias.split(n)[k] for k in order])
    forget = torch.zeros_like(bias)
    forget[n:2 * n] = 1
    zero = x.new_zeros(1, x.shape[1], n)
    parameters = [rows[:, :n].contiguous(), rows[:, n:].contiguous(), bias, forget]
    return torch.lstm(x, (zero, zero), parameters, True, 1, 0.0, True, False, False)[0]


def deepspeech(c, w, x, noise):
    around = c["Context"]

    def linear(name, y):
        return F.linear(y, w[name + "/weight"].t(), w[name + "/bias"])

    y = F.pad(x["features"], (0, 0, 0, 0, around, around)).unfold(0, 2 * around + 1, 1)
    y = y.transpose(2, 3).flatten(2)
    for name in ("1", "2", "3"):
        y = F.hardtanh(linear(name, y), 0, 20)
    y = lstm(y, w["lstm/weight"], w["lstm/bias"])
    y = linear("6", F.hardtanh(linear("5", y), 0, 20))
    heard = x["frames"] > 0
    loss = F.ctc_loss(y.log_softmax(-1)[:, heard], x["labels"][heard], x["frames"][heard], x["lengths"][heard],
                      blank=c["Symbols"] - 1, reduction="none")
    return loss.mean()


# Recurrent language model


def gates(w):
    """What PyTorch's LSTM has of an LSTM with matrices a gate: [x h] to gates in gomem's order."""
    names = ("input", "candidate", "forget", "output")
    return torch.cat([torch.cat([w[g + "/weight"], w[g + "/state-weight"]]) for g in names], 1)


def lstm_lm(c, w, x, noise):
    table = w["embedding/weight"]
    y = F.embedding(x["tokens"], table).transpose(0, 1) * math.sqrt(c["Units"])
    for i in range(c["Layers"]):
        layer = w.at("lstm", i)
        y = lstm(y, gates(layer), layer["bias"])
    logits = F.linear(y.transpose(0, 1), table)
    return F.cross_entropy(logits.flatten(0, 1), x["targets"].flatten(), ignore_index=-1)


def topic(c, w, x, noise):
    """The proportions of documents are found as often as the graph does, and held."""
    b = torch.cat([w["topics/%d/weight" % i] for i in range(c["Parts"])], 1)
    words = x["words"]
    with torch.no_grad():
        gram = b.abs()
        v = torch.ones(gram.shape[1], dtype=b.dtype)
        for _ in range(3):
            before, v = v, gram.T @ (gram @ v) + 1e-6 * v
        step = 1 / (v / before).max()
        a = ahead = torch.zeros(words.shape[0], gram.shape[1], dtype=b.dtype)
        t = 1.0
        for _ in range(c["Iterations"]):
            now = (ahead - step * ((ahead @ b.T - words) @ b + c["Sparsity"])).relu()
            after = (1 + math.sqrt(4 * t * t + 1)) / 2
            a, ahead, t = now, now + (t - 1) / after * (now - a), after
    losses = (a @ b.T - words).square().sum(1) / 2
    return (losses * x["counts"]).sum() / x["counts"].sum().clamp(min=1)


MODELS = {
    "topic": topic,
    "transformer": transformer,
    "moe": moe,
    "gpt": gpt,
    "lstm-lm": lstm_lm,
    "resnet": resnet,
    "wgan critic": wgan_critic,
    "wgan generator": wgan_generator,
    "deepspeech": deepspeech,
}


def read(path):
    """The tensors of a safetensors file in its order, and its metadata."""
    types = {"F32": torch.float32, "I32": torch.int32}
    with open(path, "rb") as f:
        header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        metadata = header.pop("__metadata__")
        out = {}
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            x = torch.frombuffer(bytearray(f.read(end - begin)), dtype=types[entry["dtype"]])
            out[name] = x.view(entry["shape"])
    return out, metadata


def differentiate(tensors, metadata, dtype, half=False):
    """The loss, and the gradients in the file's order; half: with autocast to bfloat16."""
    def cast(x):
        return x.long() if x.dtype == torch.int32 else x.to(dtype)

    all = Tensors({n: cast(x) for n, x in tensors.items()})
    w = all.at("parameter")
    names = all.at("gradient").names()
    wanted = [w[n].clone().requires_grad_() for n in names]
    w.all.update(zip(("parameter/" + n for n in names), wanted))
    model = MODELS[metadata["kind"]]
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
        loss = model(json.loads(metadata["config"]), w, all.at("input"), all.at("noise"))
    grads = torch.autograd.grad(loss, wanted, allow_unused=True)
    zeros = [torch.zeros_like(p) if g is None else g for p, g in zip(wanted, grads)]
    return loss.item(), dict(zip(names, zeros))


def number(x):
    """What is not a number, or too large for one, is very wrong."""
    return x if abs(x) < 1e30 else 1e30


def compare(path):
    tensors, metadata = read(path)
    loss, truth = differentiate(tensors, metadata, torch.float64)
    half = metadata["precision"] == "bf16"
    loss32, single = differentiate(tensors, metadata, torch.float32, half)
    top = max(g.abs().max().item() for g in truth.values())

    def error(name, x):
        largest = truth[name].abs().max().item()
        if largest < 1e-12 * top:  # zero but for rounding
            largest = max(top, 1e-30)
        return number((x.double() - truth[name]).abs().max().item() / largest)

    return {"loss": number(loss), "loss32": number(loss32), "gradients": [
        {"name": n, "error": error(n, tensors["gradient/" + n]), "error32": error(n, single[n])}
        for n in truth]}


class Trained:
    """A model for steps of gradient descent."""

    def __init__(self, path, threads, compiled):
        torch.set_num_threads(threads)
        tensors, metadata = read(path)
        all = Tensors({n: x.long() if x.dtype == torch.int32 else x for n, x in tensors.items()})
        w, config = all.at("parameter"), json.loads(metadata["config"])
        self.w = {n: w[n].clone().requires_grad_() for n in all.at("gradient").names()}
        w.all.update(("parameter/" + n, x) for n, x in self.w.items())
        model, x, noise = MODELS[metadata["kind"]], all.at("input"), all.at("noise")
        self.loss = lambda: model(config, w, x, noise)
        if compiled:
            self.loss = torch.compile(self.loss)
        self.optimizer = torch.optim.SGD(self.w.values(), lr=1e-6, foreach=True)

    def step(self):
        start = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss()
        loss.backward()
        self.optimizer.step()
        loss = float(loss.detach())
        return {"seconds": time.perf_counter() - start, "loss": loss}


class Server:
    def answer(self, line):
        if line == "step":
            return self.trained.step()
        if line.startswith("{"):
            self.trained = Trained(**json.loads(line))
            return {}
        return compare(line)


torch.set_num_threads(1)
serve(Server().answer)
