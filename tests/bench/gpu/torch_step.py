"""A model's training step in PyTorch, in a process of its own.

    python3 torch_step.py MODEL VARIANT [--batch N] [--length T] [--device cuda|cpu] [--tiny] [--precision bf16|fp32]

Each line N that it reads: two steps to warm up, then N steps that are timed, then a line of JSON with their
milliseconds, the loss, and the peak of memory. Between its turns it gives cached memory back, so that others may run on the
device. An empty line, or the end: it ends.

VARIANT: "eager", or words joined by "+": compile; budget (compile's activation memory budget at 0.5); checkpoint (each
block is recomputed); tf32. Parameters are fp32; bf16 is autocast's. AdamW is the fused one. ResNet's tensors lie
channels-last.
"""
import argparse
import json
import sys
import time

import torch
from torch.utils.checkpoint import checkpoint

import models


def recompute(model):
    def wrap(module):
        forward = module.forward
        module.forward = lambda *x: checkpoint(forward, *x, use_reentrant=False)

    for m in model.modules():
        if isinstance(m, models.CHECKPOINTED):
            wrap(m)


class Step:
    def __init__(self, args):
        words = args.variant.split("+")
        unknown = set(words) - {"eager", "compile", "budget", "checkpoint", "tf32"}
        if unknown:
            sys.exit(f"unknown variant: {args.variant}")
        self.cuda = args.device == "cuda"
        self.narrow = torch.autocast(args.device, dtype=torch.bfloat16, enabled=args.precision == "bf16")
        torch.set_float32_matmul_precision("high" if "tf32" in words else "highest")
        torch.backends.cudnn.allow_tf32 = "tf32" in words
        torch.backends.cudnn.benchmark = True
        model = models.make(args.model, args.tiny, args.length).to(args.device)
        x, self.target = (t.to(args.device) for t in models.data(args.model, args.batch, args.tiny, args.length))
        if x.dim() == 4:
            model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
        self.x = x
        if "checkpoint" in words:
            recompute(model)
        self.optimizer = torch.optim.AdamW(model.parameters(), fused=True, **models.OPTIMIZER)
        self.forward = self.forward_of(model)
        if "compile" in words or "budget" in words:
            if "budget" in words:
                import torch._functorch.config as config
                config.activation_memory_budget = 0.5
            self.forward = torch.compile(self.forward)

    def forward_of(self, model):
        def forward(x, target):
            with self.narrow:
                return models.loss(model(x), target)
        return forward

    def once(self):
        self.optimizer.zero_grad()
        loss = self.forward(self.x, self.target)
        loss.backward()
        self.optimizer.step()
        return loss

    def timed(self, n):
        """Milliseconds of each step, on the device's clock where there is one: the host runs ahead."""
        if not self.cuda:
            at = [time.perf_counter()]
            for _ in range(n):
                loss = self.once()
                at.append(time.perf_counter())
            return [1e3 * (b - a) for a, b in zip(at, at[1:])], loss
        marks = [torch.cuda.Event(enable_timing=True) for _ in range(n + 1)]
        marks[0].record()
        for mark in marks[1:]:
            loss = self.once()
            mark.record()
        torch.cuda.synchronize()
        return [a.elapsed_time(b) for a, b in zip(marks, marks[1:])], loss

    def turn(self, n):
        for _ in range(2):
            self.once()
        if self.cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
        ms, loss = self.timed(n)
        out = {"ms": ms, "loss": float(loss.detach())}
        if self.cuda:
            free, total = torch.cuda.mem_get_info()
            out.update(allocated=torch.cuda.max_memory_allocated(), reserved=torch.cuda.max_memory_reserved(),
                       device_used=total - free)
            torch.cuda.empty_cache()
        return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model", choices=models.NAMES)
    parser.add_argument("variant")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--length", type=int, default=1024)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", choices=("bf16", "fp32"), default="bf16")
    parser.add_argument("--tiny", action="store_true")
    step = Step(parser.parse_args())
    for line in sys.stdin:
        if not line.strip():
            break
        print(json.dumps(step.turn(int(line))), flush=True)


if __name__ == "__main__":
    main()
