"""Networks of PyTorch as ONNX files, with what PyTorch computes of them.

    python bench/onnx/export.py DIRECTORY [-only PART] [-tiny]

Every network has random weights of a fixed seed and is exported in three ways: by the exporter that
captures programs (NAME-dynamo.onnx), by the same without its optimiser, which folds norms and
constants into weights (NAME-plain.onnx), and by the older one that records a run, with a batch of
any size (NAME-torchscript.onnx). Beside each file is an .npz with the inputs (in.NAME), the output
(out.0), weights of its elements (weight.0), and the gradients of the weighted sum by the parameters
that the file has, by its names for them and in its layout (grad.NAME). Outputs and gradients are
computed in 64 bits. -tiny exports the small networks of testdata.
"""
import argparse
import copy
import pathlib
import warnings

import numpy as np
import onnx
import onnx.numpy_helper
import torch
import torchvision
import transformers
from torch import nn

SEED = 1


class First(nn.Module):
    """A network of transformers, of plain arguments, that gives its first output."""

    def __init__(self, inner, *names, **fixed):
        super().__init__()
        self.inner, self.names, self.fixed = inner, names, fixed

    def forward(self, *args):
        return self.inner(**dict(zip(self.names, args)), **self.fixed)[0]


class Classifier(nn.Module):
    """Two layers of an LSTM in both directions over words, and classes of the last state."""

    def __init__(self, words=200, width=64, classes=5):
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * width, classes)

    def forward(self, words):
        y, _ = self.lstm(self.table(words))
        return self.head(y[:, -1])


def double(inputs, outputs):
    """Two convolutions with norms."""
    layers = []
    for i in (inputs, outputs):
        layers += [nn.Conv2d(i, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)


class Attention(nn.Module):
    """Attention that a mask may leave nothing to attend to, which gives zeros."""

    def __init__(self, width=6):
        super().__init__()
        self.joint = nn.Linear(width, 3 * width)

    def forward(self, x, seen):
        q, k, v = self.joint(x).chunk(3, -1)
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)


def hidden():
    """A sequence whose second element sees nothing. For the older exporter: the other writes a
    network that has it see everything alike."""
    seen = torch.ones(5, 5, dtype=torch.bool).tril()
    seen[1] = False
    return Attention(), (torch.randn(2, 1, 5, 6), seen)


class UNet(nn.Module):
    """Three scales, up by transposed convolutions and once by interpolation."""

    def __init__(self, width=16):
        super().__init__()
        self.down = nn.ModuleList([double(3, width), double(width, 2 * width)])
        self.middle = double(2 * width, 4 * width)
        self.up = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.joined = nn.ModuleList([double(4 * width, 2 * width), double(3 * width, width)])
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        first = self.down[0](x)
        second = self.down[1](nn.functional.max_pool2d(first, 2))
        y = self.up(self.middle(nn.functional.max_pool2d(second, 2)))
        y = self.joined[0](torch.cat([y, second], 1))
        y = nn.functional.interpolate(y, scale_factor=2, mode="bilinear", align_corners=False)
        return self.head(self.joined[1](torch.cat([y, first], 1)))


class Small(nn.Module):
    """Convolutions and pools for a test."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Hardswish(), nn.MaxPool2d(2),
            nn.Conv2d(8, 8, 3, stride=2, groups=4), nn.SiLU(), nn.AdaptiveAvgPool2d(1))
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        return self.head(torch.flatten(self.layers(x), 1))


def words(vocabulary, batch, length):
    """Words other than 0, which BERT's table takes for padding, and has no gradient of."""
    return torch.randint(1, vocabulary, (batch, length))


def text(vocabulary, length):
    """Two texts, and which of their words count: of the second, only the first half."""
    mask = torch.ones(2, length, dtype=torch.int64)
    mask[1, length // 2:] = 0
    return words(vocabulary, 2, length), mask


def image(size):
    return torch.randn(1, 3, size, size)


def bert(hidden=256, layers=2, length=32, vocabulary=1000):
    inner = transformers.BertModel(transformers.BertConfig(
        vocab_size=vocabulary, hidden_size=hidden, num_hidden_layers=layers,
        num_attention_heads=max(2, hidden // 64), intermediate_size=4 * hidden,
        max_position_embeddings=2 * length), add_pooling_layer=False)
    return First(inner, "input_ids", "attention_mask"), text(vocabulary, length)


def gpt2():
    inner = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=1000, n_embd=256, n_layer=2, n_head=4, n_positions=64))
    return First(inner, "input_ids", "attention_mask", use_cache=False), text(1000, 32)


def llama():
    inner = transformers.LlamaModel(transformers.LlamaConfig(
        vocab_size=1000, hidden_size=256, intermediate_size=688, num_hidden_layers=2,
        num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=64))
    return First(inner, "input_ids", "attention_mask", use_cache=False), text(1000, 32)


def whisper():
    config = transformers.WhisperConfig(
        d_model=256, encoder_layers=2, encoder_attention_heads=4, encoder_ffn_dim=1024,
        max_source_positions=200, num_mel_bins=80)
    inner = transformers.models.whisper.modeling_whisper.WhisperEncoder(config)
    return First(inner, "input_features"), (torch.randn(1, 80, 400),)


def vit():
    inner = torchvision.models.VisionTransformer(
        image_size=224, patch_size=16, num_layers=2, num_heads=12, hidden_dim=768, mlp_dim=3072)
    return inner, (image(224),)


NETWORKS = {
    "resnet50": lambda: (torchvision.models.resnet50(), (image(96),)),
    "mobilenet_v3_small": lambda: (torchvision.models.mobilenet_v3_small(), (image(224),)),
    "vit_b_16": vit,
    "bert": bert,
    "gpt2": gpt2,
    "llama": llama,
    "whisper": whisper,
    "lstm": lambda: (Classifier(), (words(200, 4, 20),)),
    "unet": lambda: (UNet(), (image(64),)),
}

TINY = {
    "bert": lambda: bert(hidden=8, layers=1, length=4, vocabulary=12),
    "cnn": lambda: (Small(), (image(12),)),
    "hidden": hidden,
    "lstm": lambda: (Classifier(words=10, width=4), (words(10, 2, 5),)),
}

EXPORTERS = ("dynamo", "plain", "torchscript")


def built(make):
    """A network in evaluation, no two of whose parameters are alike, and its inputs."""
    torch.manual_seed(SEED)
    net, inputs = make()
    with torch.no_grad():
        for p in net.parameters():
            if p.dim() < 2 or not p.any():
                p.add_(0.1 * torch.randn_like(p))
        for name, b in net.named_buffers():
            if name.endswith("running_mean"):
                b.copy_(0.1 * torch.randn_like(b))
            if name.endswith("running_var"):
                b.copy_(1 + torch.rand_like(b))
    return net.eval(), inputs


def trained(net):
    return [(name, p) for name, p in net.named_parameters() if p.requires_grad]


def truth(net, inputs):
    """Outputs, their weights, and the gradients of all parameters, in 64 bits."""
    net = copy.deepcopy(net).double()
    y = net(*[x.double() if x.is_floating_point() else x for x in inputs])
    weight = torch.cos(torch.arange(y.numel(), dtype=torch.float64)).reshape(y.shape)
    (y * weight.float().double()).sum().backward()
    gradients = {name: p.grad.float().numpy() for name, p in trained(net)}
    return y.detach().float().numpy(), weight.float().numpy(), gradients


def exported(net, inputs, path, exporter):
    """A file of a network, which the older exporter leaves the batch open in."""
    if exporter == "torchscript":
        names = [f"input{i}" for i in range(len(inputs))]
        torch.onnx.export(net, inputs, path, dynamo=False, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.PRESERVE, opset_version=18,
                          input_names=names, dynamic_axes={n: {0: "batch"} for n in names})
        return
    torch.onnx.export(net, inputs, path, dynamo=True, optimize=exporter == "dynamo",
                      verbose=False)


def slim(path):
    """Leaves out where nodes come from, and has weights in the file."""
    model = onnx.load(path)
    for n in model.graph.node:
        del n.metadata_props[:]
        n.ClearField("doc_string")
    del model.graph.metadata_props[:]
    del model.graph.value_info[:]
    path.with_suffix(".onnx.data").unlink(missing_ok=True)
    onnx.save(model, path)


def layouts(x):
    """An array, and the same turned round as exporters do."""
    yield x, lambda a: a
    if x.ndim == 2:
        yield x.T, lambda a: a.T


def named(net, model, gradients):
    """The gradients by the names that a file has for the parameters, which are found by value,
    and the names of those that it has not."""
    known = {}
    for t in model.graph.initializer:
        a = onnx.numpy_helper.to_array(t)
        known.setdefault((a.shape, a.tobytes()), t.name)
    found, missing = {}, []
    for name, p in trained(net):
        for x, turn in layouts(p.detach().numpy()):
            as_named = known.pop((x.shape, x.tobytes()), None)
            if as_named:
                found["grad." + as_named] = np.ascontiguousarray(turn(gradients[name]))
                break
        else:
            missing.append(name)
    return found, missing


def written(net, inputs, path, exporter, tiny):
    """Writes a network's files, and returns how many parameters its file has not."""
    exported(net, inputs, path, exporter)
    if tiny:
        slim(path)
    model = onnx.load(path)
    y, weight, gradients = truth(net, inputs)
    arrays, missing = named(net, model, gradients)
    if missing and exporter != "dynamo":
        raise LookupError(f"{path} has no parameters {missing}")
    arrays |= {f"in.{v.name}": x.numpy() for v, x in zip(model.graph.input, inputs)}
    np.savez_compressed(path.with_suffix(".npz"), **arrays, **{"out.0": y, "weight.0": weight})
    return len(missing)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("-only", default="", help="a part of the names of networks")
    parser.add_argument("-tiny", action="store_true")
    args = parser.parse_args()
    args.directory.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    jobs = [(name, e) for name in NETWORKS for e in EXPORTERS]
    if args.tiny:
        jobs = [("bert", "dynamo"), ("cnn", "torchscript"), ("hidden", "torchscript"),
                ("lstm", "torchscript")]
    for name, exporter in jobs:
        if args.only in name:
            net, inputs = built((TINY if args.tiny else NETWORKS)[name])
            path = args.directory / f"{name}-{exporter}.onnx"
            missing = written(net, inputs, path, exporter, args.tiny)
            print(f"{path}: without {missing} parameters", flush=True)


if __name__ == "__main__":
    main()
