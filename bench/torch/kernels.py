#!/usr/bin/env python3
"""Two memory-bound kernels in PyTorch: compiled cross-entropy forward + backward, and fused AdamW. JSON lines.

usage: kernels.py
"""
import json
import sys

import torch
import torch.nn.functional as F

from timing import capture, spread, times_ms


def cross_entropy_work(rows, vocab):
    """The loss of bf16 logits and its gradient; three passes over them are counted: two reads and a write."""
    logits = torch.randn(rows, vocab, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    targets = torch.randint(0, vocab, (rows,), device="cuda")
    loss_of = torch.compile(lambda x, y: F.cross_entropy(x.float(), y), fullgraph=True, dynamic=False)
    return lambda: torch.autograd.grad(loss_of(logits, targets), logits), 3 * rows * vocab * 2


def adamw_work(count):
    """One step; reads weight, gradient and two moments, writes all but the gradient."""
    weight = torch.randn(count, device="cuda", requires_grad=True)
    weight.grad = torch.randn(count, device="cuda")
    optimizer = torch.optim.AdamW([weight], lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True, capturable=True)
    return optimizer.step, 28 * count


def main():
    if not torch.cuda.is_available():
        print("PyTorch sees no GPU: run this on a GPU machine.", file=sys.stderr)
        return 2
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for name, make in {"cross-entropy forward + backward, bf16 8192x32000": lambda: cross_entropy_work(8192, 32000),
                           "fused AdamW, fp32 32M": lambda: adamw_work(32 << 20)}.items():
            work, count = make()
            for _ in range(3):
                work()
            result = spread(times_ms(capture(work, stream).replay, seconds=0.5))
            print(json.dumps({"kernel": name, **result, "gb_per_s": count / result["ms"] * 1e-6,
                              "torch": torch.__version__, "device": torch.cuda.get_device_name()}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
