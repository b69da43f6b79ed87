"""PyTorch's side of bench/gpu: steps of one model in one way.

A request has a model's sizes and a variant:
    eager         nothing special
    compile       by torch.compile
    save_on_cpu   what the forward pass saves is in pinned memory of the host
    checkpoint    blocks are computed again in the backward pass
    fsdp_offload  parameters, gradients and optimizer on the host (FSDP2, CPUOffloadPolicy)
a precision:
    f32           TF32 off
    tf32          TF32 in products and convolutions
    bf16          automatic mixed precision, and TF32 off where it leaves f32
and a limit of what the allocator may take of the GPU's memory."""
import contextlib
import gc
import os
import resource
import statistics
import time

import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

OUT_OF_MEMORY = getattr(torch.cuda, "OutOfMemoryError", RuntimeError)


def attention(q, k, v, is_causal):
    """What older releases have no function for."""
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if is_causal:
        scores = scores + torch.full_like(scores[0, 0], float("-inf")).triu(1)
    return scores.softmax(-1) @ v


attention = getattr(F, "scaled_dot_product_attention", attention)


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.scale


class Attention(nn.Module):
    def __init__(self, c, bias):
        super().__init__()
        inner = c["heads"] * c["head"]
        self.heads, self.query = c["heads"], nn.Linear(c["width"], inner, bias)
        self.both = nn.Linear(c["width"], 2 * inner, bias)
        self.out = nn.Linear(inner, c["width"], bias)

    def forward(self, x, memory, causal):
        def split(y, n):
            return y.view(*y.shape[:2], n * self.heads, -1).transpose(1, 2)
        q, kv = split(self.query(x), 1), split(self.both(memory), 2)
        k, v = kv.chunk(2, 1)
        y = attention(q, k, v, is_causal=causal)
        return self.out(y.transpose(1, 2).flatten(2))


class Experts(nn.Module):
    """Two experts a token, each with a fixed number of slots."""

    def __init__(self, c):
        super().__init__()
        n, d, h = c["experts"], c["width"], c["hidden"]
        self.n, self.slots, self.gate = n, c["slots"], nn.Linear(d, n, bias=False)
        self.first = nn.Parameter(torch.randn(n, d, h) * d**-0.5)
        self.second = nn.Parameter(torch.randn(n, h, d) * h**-0.5)

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        weight, chosen = self.gate(flat).softmax(-1).topk(2, -1)
        weight, chosen = weight / weight.sum(-1, keepdim=True), chosen.reshape(-1)
        place = F.one_hot(chosen, self.n).cumsum(0).gather(1, chosen[:, None]).squeeze(1) - 1
        kept = place < self.slots
        slot = torch.where(kept, chosen * self.slots + place, self.n * self.slots)
        room = flat.new_zeros(self.n * self.slots + 1, flat.shape[-1])
        room = room.index_copy(0, slot, flat.repeat_interleave(2, 0))
        y = F.relu(torch.bmm(room[:-1].view(self.n, self.slots, -1), self.first))
        y = torch.bmm(y, self.second).flatten(0, 1)
        y = torch.cat([y, y.new_zeros(1, y.shape[-1])]).index_select(0, slot)
        y = y * (weight.reshape(-1) * kept)[:, None]
        return y.view(-1, 2, y.shape[-1]).sum(1).view(x.shape)


class Block(nn.Module):
    def __init__(self, c, cross):
        super().__init__()
        moe = c["kind"] == "moe"
        norm = RMSNorm if moe else nn.LayerNorm
        self.norms = nn.ModuleList(norm(c["width"]) for _ in range(2 + cross))
        self.own = Attention(c, not moe)
        self.cross = Attention(c, not moe) if cross else None
        self.feed = Experts(c) if moe else nn.Sequential(
            nn.Linear(c["width"], c["hidden"]), nn.ReLU(), nn.Dropout(0.1),
            nn.Linear(c["hidden"], c["width"]))
        self.drop = nn.Dropout(0.1)

    def forward(self, x, memory):
        y = self.norms[0](x)
        x = x + self.drop(self.own(y, y, self.cross is not None))
        if self.cross is not None:
            x = x + self.drop(self.cross(self.norms[2](x), memory, False))
        return x + self.drop(self.feed(self.norms[1](x)))


class Translator(nn.Module):
    """An encoder and a decoder that share their embedding."""

    def __init__(self, c):
        super().__init__()
        self.embedding = nn.Embedding(c["vocab"], c["width"])
        nn.init.normal_(self.embedding.weight, std=c["width"] ** -0.5)
        self.place = nn.Parameter(torch.randn(c["length"], c["width"]) * 0.02)
        self.blocks = nn.ModuleList(Block(c, i >= c["layers"]) for i in range(2 * c["layers"]))
        self.norms = nn.ModuleList(nn.LayerNorm(c["width"]) for _ in range(2))
        self.layers = c["layers"]

    def forward(self, run, source, target):
        x = self.embedding(source) + self.place
        for b in self.blocks[: self.layers]:
            x = run(b, x, x)
        memory, x = self.norms[0](x), self.embedding(target.roll(1, 1)) + self.place
        for b in self.blocks[self.layers :]:
            x = run(b, x, memory)
        logits = F.linear(self.norms[1](x), self.embedding.weight)
        return F.cross_entropy(logits.flatten(0, 1), target.flatten(), label_smoothing=0.1)


class Bottleneck(nn.Module):
    def __init__(self, before, width, stride):
        super().__init__()
        def conv(a, b, k, s):
            return [nn.Conv2d(a, b, k, s, k // 2, bias=False), nn.BatchNorm2d(b)]
        relu = nn.ReLU(inplace=True)
        self.main = nn.Sequential(*conv(before, width, 1, 1), relu, *conv(width, width, 3, stride),
                                  relu, *conv(width, 4 * width, 1, 1))
        same = stride == 1 and before == 4 * width
        self.short = nn.Identity() if same else nn.Sequential(*conv(before, 4 * width, 1, stride))

    def forward(self, x, _):
        return F.relu(self.main(x) + self.short(x), inplace=True)


class ResNet(nn.Module):
    def __init__(self, c):
        super().__init__()
        w = before = c["width"]
        self.stem = nn.Sequential(nn.Conv2d(3, w, 7, 2, 3, bias=False), nn.BatchNorm2d(w),
                                  nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        self.blocks = nn.ModuleList()
        for stage, count in enumerate(c["blocks"]):
            for i in range(count):
                self.blocks.append(Bottleneck(before, w << stage, 2 if stage and i == 0 else 1))
                before = 4 * w << stage
        self.last = nn.Linear(before, c["classes"])

    def forward(self, run, images, labels):
        x = self.stem(images)
        for b in self.blocks:
            x = run(b, x, x)
        return F.cross_entropy(self.last(x.mean((2, 3))), labels)


def data(c, device):
    torch.manual_seed(1)
    if c["kind"] == "resnet":
        images = torch.randn(c["batch"], 3, c["pixels"], c["pixels"])
        return images.to(device), torch.randint(1, c["classes"], (c["batch"],)).to(device)
    ids = (torch.randint(1, c["vocab"], (c["batch"], c["length"])) for _ in range(2))
    return tuple(i.to(device) for i in ids)


def optimizer(c, parameters):
    if c["kind"] == "resnet":
        return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9, weight_decay=1e-4)
    if c["kind"] == "moe" and hasattr(torch.optim, "Adafactor") and c["variant"] != "fsdp_offload":
        return torch.optim.Adafactor(parameters, lr=1e-4)
    return torch.optim.Adam(parameters, lr=1e-4)


def sharded(model, device):
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29571")
    if not dist.is_initialized():
        kinds = "cpu:gloo,cuda:nccl" if device == "cuda" else "gloo"
        dist.init_process_group(kinds, rank=0, world_size=1)
    policy = CPUOffloadPolicy(pin_memory=device == "cuda")
    options = {"mesh": init_device_mesh(device, (1,)), "offload_policy": policy}
    for block in model.blocks:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def train(c):
    cuda, variant = c["device"] == "cuda", c["variant"]
    offload = variant == "fsdp_offload"
    if cuda and c["cap"]:
        whole = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, c["cap"] / whole))
    torch.manual_seed(0)
    model = ResNet(c) if c["kind"] == "resnet" else Translator(c)
    count = sum(p.numel() for p in model.parameters())
    model = sharded(model, c["device"]) if offload else model.to(c["device"])
    update, inputs = optimizer(c, model.parameters()), data(c, c["device"])

    def run(block, *x):
        return checkpoint(block, *x, use_reentrant=False) if variant == "checkpoint" else block(*x)

    def loss_of(*inputs):
        return model(run, *inputs)

    if variant == "compile":
        loss_of = torch.compile(loss_of, backend="inductor" if cuda else "aot_eager")

    def step():
        saving = contextlib.nullcontext()
        if variant == "save_on_cpu":
            saving = torch.autograd.graph.save_on_cpu(pin_memory=cuda)
        numbers = contextlib.nullcontext()
        if c["precision"] == "bf16":
            numbers = torch.autocast(c["device"], dtype=torch.bfloat16)
        with saving, numbers:
            loss = loss_of(*inputs)
        loss.backward()
        update.step()
        update.zero_grad(set_to_none=True)
        return loss.item()  # which waits for the step

    times, loss = [], None
    for i in range(c["warm"] + c["most"]):
        if i == c["warm"]:
            began = time.perf_counter()
        if i >= c["warm"] + c["least"] and time.perf_counter() - began > c["seconds"]:
            break
        start = time.perf_counter()
        loss = step()
        if i >= c["warm"]:
            times.append(time.perf_counter() - start)
    peak, host = torch.cuda.max_memory_allocated() if cuda else 0, pinned()
    return {"Parameters": count, "Seconds": statistics.median(times), "Loss": loss, "Peak": peak,
            "Host": host, "Load": load(peak, host, c["cap"])}


def pinned():
    """The most that was pinned of the host's memory, of releases that say so."""
    if not torch.cuda.is_available() or not hasattr(torch.cuda, "host_memory_stats"):
        return 0
    return torch.cuda.host_memory_stats().get("allocated_bytes.peak", 0)


def load(peak, host, cap):
    """The part that is taken of what there is of memory, the GPU's or the host's."""
    there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    with contextlib.suppress(OSError, ValueError):  # a container has less
        with open("/sys/fs/cgroup/memory.max") as f:
            there = min(there, int(f.read()))
    host += 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return max(peak / cap if cap else 0, host / there)


def forget():
    """Leaves nothing of the request before."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def answer(line):
    c = json.loads(line)
    tf32 = c["precision"] == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    forget()
    try:
        return train(c)
    except OUT_OF_MEMORY as e:
        if "out of memory" not in str(e):
            raise
        return {"Refused": "out of memory"}
    except RuntimeError as e:
        if "pin" not in str(e) and "DefaultCPUAllocator" not in str(e):
            raise
        return {"Refused": "out of the host's memory"}


serve(answer)
