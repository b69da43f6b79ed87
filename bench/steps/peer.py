"""The models of this benchmark in PyTorch, one training step at a time.

Answers a line of JSON to each:

  {...}    the model's sizes and the number of threads; the parameters, the inputs
           and the constants follow as one safetensors file
  step     one training step: seconds, loss
  memory   bytes: of parameters, of the optimizer's state, and the most that a
           step allocates besides
  profile  one step's operators with shapes: name, calls, seconds
"""
import math
import time

import torch.nn.functional as F


def read_tensors(f):
    """The tensors of a safetensors file; those of integers as PyTorch wants ids."""
    header = json.loads(f.read(int.from_bytes(f.read(8), "little")))
    types = {"F32": torch.float32, "I32": torch.int32}
    names = [n for n in header if n != "__metadata__"]
    out = {}
    for name in sorted(names, key=lambda n: header[n]["data_offsets"][0]):
        begin, end = header[name]["data_offsets"]
        x = torch.frombuffer(bytearray(f.read(end - begin)), dtype=types[header[name]["dtype"]])
        x = x.view(header[name]["shape"])
        out[name] = x.long() if x.dtype == torch.int32 else x.clone()
    return out


def adam(parameters, rate):
    """Adam in one pass over each parameter, where this PyTorch has that for processors."""
    try:
        return torch.optim.Adam(parameters, lr=rate, fused=True)
    except (RuntimeError, TypeError):
        return torch.optim.Adam(parameters, lr=rate)


class Model:
    def __init__(self, size, tensors):
        self.__dict__.update(size)
        self.inputs = {n: x for n, x in tensors.items() if x.dtype == torch.long}
        self.table = tensors.pop("positions")
        self.w = {n: x for n, x in tensors.items() if x.dtype != torch.long}
        for name, x in self.w.items():
            if x.dim() == 2 and name.endswith("/weight"):
                self.w[name] = x.t().contiguous()  # as PyTorch keeps them: [out in]
            self.w[name].requires_grad_()
        self.balance = []
        self.optimizer = adam(list(self.w.values()), size["rate"])
        self.objective = torch.compile(self.loss) if size["compiled"] else self.loss

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.objective()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    def linear(self, name, x):
        return F.linear(x, self.w[name + "/weight"], self.w[name + "/bias"])

    def norm(self, name, x):
        return F.layer_norm(x, (self.width,), self.w[name + "/scale"], self.w[name + "/bias"], 1e-5)

    def embed(self, ids):
        return F.embedding(ids, self.w["embedding"]) * math.sqrt(self.width) + self.table

    def split(self, x):
        return x.view(self.batch, self.length, self.heads, -1).transpose(1, 2)

    def attend(self, name, x, memory, mask=None):
        q = self.split(self.linear(name + "/query", x))
        k = self.split(self.linear(name + "/key", memory))
        v = self.split(self.linear(name + "/value", memory))
        a = q @ k.transpose(-1, -2) / math.sqrt(self.width // self.heads)
        if mask is not None:
            a = a + mask
        y = (a.softmax(-1) @ v).transpose(1, 2).reshape(x.shape)
        return self.linear(name + "/output", y)

    def forward(self, name, x):
        return self.linear(name + "/second", F.relu(self.linear(name + "/first", x)))

    def encode(self, name, x, mask, second):
        x = self.norm(name + "/norm1", x + self.attend(name + "/attention", x, x, mask))
        return self.norm(name + "/norm2", x + second(name, x))

    def decode(self, name, y, memory, mask):
        y = self.norm(name + "/norm1", y + self.attend(name + "/attention", y, y, mask))
        y = self.norm(name + "/norm2", y + self.attend(name + "/cross", y, memory))
        return self.norm(name + "/norm3", y + self.forward(name, y))

    def causal(self):
        return torch.full((self.length, self.length), float("-inf")).triu(1)

    def entropy(self, x):
        logits = F.linear(x, self.w["embedding"])
        return F.cross_entropy(logits.flatten(0, 1), self.inputs["labels"].flatten())

    def loss(self):
        if self.kind == "transformer":
            return self.transformer()
        return self.language_model(self.einsum if self.kind == "moe-einsum" else self.gather)

    def transformer(self):
        x = self.embed(self.inputs["source"])
        for i in range(self.layers):
            x = self.encode(f"encoder{i}", x, None, self.forward)
        mask = self.causal()
        y = self.embed(self.inputs["target"])
        for i in range(self.layers):
            y = self.decode(f"decoder{i}", y, x, mask)
        return self.entropy(y)

    def language_model(self, experts):
        self.balance = []
        mask = self.causal()
        x = self.embed(self.inputs["tokens"])
        for i in range(self.layers):
            x = self.encode(f"layer{i}", x, mask, lambda name, x: self.mixture(name, x, experts))
        return self.entropy(x) + self.balance_weight * sum(self.balance)

    def mixture(self, name, x, experts):
        flat = x.reshape(-1, self.width)
        gates = F.linear(flat, self.w[name + "/gate/weight"]).softmax(-1)
        top, index = gates.topk(2, -1)
        top = top / top.sum(-1, keepdim=True)
        share = F.one_hot(index[:, 0], self.experts).float().mean(0)
        self.balance.append(self.experts * (gates.mean(0) * share).sum())
        y = experts(flat, top, index, self.w[name + "/experts/first"], self.w[name + "/experts/second"])
        return y.view(x.shape)

    def einsum(self, x, top, index, w1, w2):
        n = x.shape[0]
        slots = max(4, math.ceil(2 * n / self.experts * self.capacity_factor))
        with torch.no_grad():  # all first choices queue before the second ones
            chosen = F.one_hot(index.t().reshape(-1), self.experts)
            position = (chosen.cumsum(0) - 1) * chosen
            kept = (position < slots) & (chosen > 0)
            dispatch = F.one_hot(position.clamp(max=slots - 1), slots).float() * kept[..., None]
            dispatch = dispatch.view(2, n, self.experts, slots)
        combine = (dispatch * top.t()[..., None, None]).sum(0)
        y = torch.einsum("tec,td->ecd", dispatch.sum(0), x)
        y = torch.bmm(F.relu(torch.bmm(y, w1)), w2)
        return torch.einsum("tec,ecd->td", combine, y)

    def gather(self, x, top, index, w1, w2):
        y = torch.zeros_like(x)
        # Indexing would allocate a gradient of all experts for every expert.
        for e, (a, b) in enumerate(zip(w1.unbind(0), w2.unbind(0))):
            token, choice = torch.where(index == e)
            if token.numel() > 0:
                h = F.relu(x[token] @ a) @ b
                y = y.index_add(0, token, h * top[token, choice, None])
        return y


def timed_step(model):
    start = time.perf_counter()
    loss = model.step()
    return {"seconds": time.perf_counter() - start, "loss": loss}


def memory(model):
    """Bytes of tensors, as the profiler sees operators allocate and free them:
    what one allocates and frees within itself is not seen."""
    model.optimizer.zero_grad(set_to_none=True)
    activity = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activity, profile_memory=True) as p:
        model.step()
    live = peak = 0
    for e in sorted(p.events(), key=lambda e: e.time_range.end):
        live += e.self_cpu_memory_usage
        peak = max(peak, live)
    size = lambda tensors: sum(x.numel() * x.element_size() for x in tensors)
    state = [x for s in model.optimizer.state.values() for x in s.values() if torch.is_tensor(x)]
    return {"parameters": size(model.w.values()), "state": size(state), "step": peak}


def profile(model):
    for _ in range(2):  # the profiler before has left memory in disorder
        model.step()
    activity = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activity, record_shapes=True) as p:
        model.step()
    rows = [
        {"name": e.key, "shapes": str(e.input_shapes), "calls": e.count, "seconds": e.self_cpu_time_total / 1e6}
        for e in p.key_averages(group_by_input_shape=True)
    ]
    return {"operators": sorted(rows, key=lambda r: -r["seconds"])[:20]}


class Server:
    def answer(self, line):
        if line.startswith("{"):
            size = json.loads(line)
            torch.set_num_threads(size["threads"])
            self.model = Model(size, read_tensors(sys.stdin.buffer))
            return {}
        return {"step": timed_step, "memory": memory, "profile": profile}[line](self.model)


serve(Server().answer)
