"""A training step in PyTorch, whole or shared by two processes (DistributedDataParallel over gloo): seconds a step.

    ddp_step.py MODEL BATCH STEPS THREADS [channels_last]
    mpirun -n 2 ddp_step.py MODEL BATCH STEPS THREADS [channels_last]     each takes its half of the batch
"""
import os
import pathlib
import sys
import time

import torch
import torch.distributed

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "step"))
import models  # noqa: E402


def main(name, batch, steps, threads, *words):
    rank, n = (int(os.environ.get("OMPI_COMM_WORLD_" + x, y)) for x, y in (("RANK", "0"), ("SIZE", "1")))
    torch.set_num_threads(int(threads))
    models.MODELS[name].batch = int(batch)
    model, (x, target) = models.make(name), models.data(name)
    x, target = x.chunk(n)[rank], target.chunk(n)[rank]
    if words:
        model, x = (t.to(memory_format=torch.channels_last) for t in (model, x))
    if n > 1:
        os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
        os.environ.setdefault("MASTER_PORT", "29517")
        torch.distributed.init_process_group("gloo", rank=rank, world_size=n)
        model = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = models.optimizer(name, model)
    took = []
    for _ in range(int(steps) + 1):
        start = time.monotonic()
        optimizer.zero_grad()
        models.loss(model(x), target).backward()
        optimizer.step()
        took.append(time.monotonic() - start)
    if rank == 0:
        print("seconds", *took[1:])
    if n > 1:
        torch.distributed.destroy_process_group()


main(*sys.argv[1:])
