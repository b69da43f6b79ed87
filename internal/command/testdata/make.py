"""Writes small networks as ONNX's files, data for them, what ONNX Runtime computes of them, and the
losses of PyTorch's training: python3 make.py, with torch, onnx, onnxscript and onnxruntime."""
import json
import numpy as np
import onnx
import onnxruntime
import torch
from torch import nn
from torch.nn import functional as F


class Losses(nn.Module):
    """Two outputs of one row, and a loss of its own."""

    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(2, 4), nn.Linear(4, 2)

    def forward(self, x, y):
        mean, logit = self.out(torch.tanh(self.hidden(x))).split(1, 1)
        return mean, logit, (mean - y).square().mean()


def export(name, net, feeds, outputs):
    batch = {0: torch.export.Dim("batch")}
    program = torch.onnx.export(
        net, tuple(torch.from_numpy(v) for v in feeds.values()), input_names=list(feeds),
        output_names=outputs, dynamic_shapes=tuple(batch for _ in feeds), dynamo=True,
        external_data=False)
    model = program.model_proto
    for node in list(model.graph.node) + [model]:  # where it was made is of no use
        del node.metadata_props[:]
    del model.graph.value_info[:]
    onnx.save(model, name + ".onnx")
    session = onnxruntime.InferenceSession(name + ".onnx")
    np.savez(name + ".want.npz", **dict(zip(outputs, session.run(outputs, feeds))))


def train(net, by, steps, loss):
    found, state = [], {k: v.clone() for k, v in net.state_dict().items()}
    optimizer = by(net.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss(net)
        value.backward()
        optimizer.step()
        found.append(value.item())
    net.load_state_dict(state)
    return found


def classify(x, label):
    x, label = torch.from_numpy(x), torch.from_numpy(label)
    return lambda net: F.cross_entropy(net(x), label)


torch.manual_seed(7)
rng = np.random.default_rng(7)
losses = {}

x = rng.standard_normal((9, 4)).astype(np.float32)
label = rng.integers(0, 3, 9)
mlp = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
export("mlp", mlp, {"x": x}, ["logits"])
np.savez("mlp.npz", x=x, label=label)
np.savez("mlp.x.npz", x=x)
losses["mlp sgd"] = train(mlp, lambda p: torch.optim.SGD(p, lr=0.5), 20, classify(x, label))
losses["mlp adam"] = train(mlp, lambda p: torch.optim.Adam(p, lr=0.01), 20, classify(x, label))

x = rng.standard_normal((8, 1, 8, 8)).astype(np.float32)
label = rng.integers(0, 3, 8)
cnn = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                    nn.Linear(64, 3))
export("cnn", cnn, {"x": x}, ["logits"])
np.savez("cnn.npz", x=x, label=label)
np.savez("cnn.x.npz", x=x)
losses["cnn momentum"] = train(cnn, lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), 20,
                               classify(x, label))

x = rng.standard_normal((8, 2)).astype(np.float32)
y = (x[:, :1] * x[:, 1:] + 0.5).astype(np.float32)
own = Losses()
export("own", own, {"x": x, "y": y}, ["mean", "logit", "loss"])
np.savez("own.npz", x=x, y=y)
t = (y > 0.5).astype(np.float32)
np.savez("own.t.npz", x=x, y=y, t=t)
tx, ty, tt = (torch.from_numpy(v) for v in (x, y, t))
sgd = lambda p: torch.optim.SGD(p, lr=0.2)
losses["own loss"] = train(own, sgd, 20, lambda n: n(tx, ty)[2])
losses["own mse"] = train(own, sgd, 20, lambda n: F.mse_loss(n(tx, ty)[0], tt))
losses["own bce"] = train(
    own, sgd, 20, lambda n: F.binary_cross_entropy_with_logits(n(tx, ty)[1], tt))

with open("losses.json", "w") as f:
    json.dump(losses, f, indent=1)
    f.write("\n")
