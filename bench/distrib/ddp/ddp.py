"""One worker of two: an MLP trained by DistributedDataParallel over gloo.

Reads in the current directory what the Go program wrote: shapes.json, and as raw 32-bit
numbers parameters.bin, x.bin and y.bin, batch after batch. Worker r of n takes batch
e*n+r in step e. Worker 0 writes trained.bin and times.json.
"""

import array
import json
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


class MLP(torch.nn.Module):
    def __init__(self, shapes, values):
        super().__init__()
        self.all = torch.nn.ParameterList()
        for shape in shapes:
            n = 1
            for d in shape:
                n *= d
            self.all.append(torch.nn.Parameter(values[:n].reshape(shape).clone()))
            values = values[n:]

    def forward(self, x):
        for i in range(0, len(self.all), 2):
            x = x @ self.all[i] + self.all[i + 1]
            if i + 2 < len(self.all):
                x = torch.relu(x)
        return x


def read(name, code):
    numbers = array.array(code)
    with open(name, "rb") as f:
        numbers.frombytes(f.read())
    return torch.tensor(numbers)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, n = dist.get_rank(), dist.get_world_size()
    with open("shapes.json") as f:
        about = json.load(f)
    x = read("x.bin", "f").reshape(-1, about["batch"], about["width"])
    y = read("y.bin", "i").reshape(-1, about["batch"]).long()
    model = DistributedDataParallel(MLP(about["shapes"], read("parameters.bin", "f")))
    by = torch.optim.SGD(model.parameters(), lr=about["rate"], momentum=0.9)
    times = []
    for step in range(about["steps"]):
        began = time.perf_counter()
        by.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x[step * n + rank]), y[step * n + rank])
        loss.backward()
        by.step()
        times.append(time.perf_counter() - began)
    if rank == 0:
        with open("trained.bin", "wb") as f:
            for p in model.parameters():
                f.write(array.array("f", p.detach().flatten().tolist()).tobytes())
        with open("times.json", "w") as f:
            json.dump({"about": "PyTorch " + torch.__version__, "seconds": times}, f)
    dist.destroy_process_group()


main()
