"""One worker: all-reduces of a given size over gloo, timed. Goes after the prelude."""
import os
import time

import torch.distributed as dist

torch.set_num_threads(1)


LAYERS = 8


def reduce(x):
    dist.all_reduce(x)


def step(parts, compute):
    """Each part is summed up while the next ones are computed, which is to wait."""
    works = []
    for part in parts:
        time.sleep(compute / LAYERS)
        works.append(dist.all_reduce(part, async_op=True))
    for work in works:
        work.wait()


def answer(line):
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    what, size, count, compute = line.split()
    x = torch.ones(int(size) // 4)
    run = lambda: reduce(x)
    if what != "sum":
        parts = torch.chunk(x, LAYERS)
        run = lambda: step(parts, float(compute))
    run()
    times = []
    for _ in range(int(count)):
        x.fill_(1)
        dist.barrier()
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    if x[0] != dist.get_world_size() or x[-1] != dist.get_world_size():
        raise ValueError("the sum is wrong")
    return {"seconds": times}


serve(answer)
