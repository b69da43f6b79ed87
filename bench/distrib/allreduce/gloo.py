"""One worker: all-reduces of a given size over gloo, timed. Goes after the prelude."""
import os
import time

import torch.distributed as dist

torch.set_num_threads(1)


def answer(line):
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    size, count = map(int, line.split())
    x = torch.ones(size // 4)
    dist.all_reduce(x)
    times = []
    for _ in range(count):
        x.fill_(1)
        dist.barrier()
        began = time.perf_counter()
        dist.all_reduce(x)
        times.append(time.perf_counter() - began)
    if x[0] != dist.get_world_size() or x[-1] != dist.get_world_size():
        raise ValueError("the sum is wrong")
    return {"seconds": times}


serve(answer)
