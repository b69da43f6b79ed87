"""Operations in PyTorch, and their first and second gradients.

Says on a line of JSON whether there is a PyTorch. Then reads a list of cases, a line of
JSON each: an expression over tensors x[0], x[1], … and their elements, floats as the
integers of their bits. Answers each with a line: the elements of the value, and of the
gradients by those inputs that want them, once and twice.
"""
import math

import torch.nn.functional as F

TYPES = {"f32": torch.float32, "i32": torch.int64, "u8": torch.bool}


def tensor(x):
    if x["type"] == "f32":
        return torch.tensor(x["bits"], dtype=torch.int32).view(torch.float32).reshape(x["shape"])
    return torch.tensor(x["bits"], dtype=torch.int32).to(TYPES[x["type"]]).reshape(x["shape"])


def weights(like):
    """Numbers that are no two alike, to weigh elements with."""
    n = like.numel()
    return torch.cos(torch.arange(n, dtype=torch.float64)).to(like.dtype).reshape(like.shape)


def bits(x):
    if x is None:
        return None
    if x.is_floating_point():
        x = x.detach() + torch.zeros(x.shape)  # zeros may have no storage
        return x.contiguous().view(torch.int32).flatten().tolist()
    return x.to(torch.int32).flatten().tolist()


def gradients(ys, wrt):
    ys = [y for y in ys if y is not None and y.requires_grad]
    if not ys or not wrt:
        return [None] * len(wrt)
    total = sum((y * weights(y)).sum() for y in ys)
    return torch.autograd.grad(total, wrt, create_graph=True, allow_unused=True)


def evaluate(case):
    x = [tensor(t) for t in case["in"]]
    for i in case["wrt"]:
        x[i].requires_grad_()
    wrt = [x[i] for i in case["wrt"]]
    y = eval(case["expression"], {"torch": torch, "F": F, "math": math, "x": x})
    first = gradients([y], wrt)
    second = gradients(first, wrt) if case["second"] else []
    return {"value": bits(y), "shape": list(y.shape), "first": [bits(g) for g in first],
            "second": [bits(g) for g in second]}


torch.set_num_threads(1)
serve(lambda line: evaluate(json.loads(line)))
