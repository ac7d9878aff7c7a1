#!/usr/bin/env python3
"""Causal attention in bf16: cria against cuDNN and PyTorch's flash kernel, taking turns.

usage: attention.py PATH_TO_CRIA_BENCH [--backward] [--shapes BxHxSxD ...] [--rounds N] [--json FILE]

The exit status is 1 when a result is wrong or a target is missed.
"""
import argparse
import json
import math
import statistics
import subprocess
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from timing import capture, quantile

SHAPES = [(4, 32, 2048, 64), (4, 16, 2048, 128), (16, 16, 512, 64)]  # batch, heads, positions, head dim
RIVALS = {"cuDNN": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
PASSES = {"forward": ("attention", 4, 1), "backward": ("attention_backward", 8, 2.5)}  # problem, tensors, products
TARGET = 1.0  # of cuDNN's speed
SAMPLE_US = 5000
ROTATED_BYTES = 180e6  # of operands, so that they do not stay in the cache


def shape_of(text):
    """"4x32x2048x64", sizes in the order of SHAPES."""
    try:
        shape = tuple(int(size) for size in text.split("x"))
    except ValueError:
        shape = ()
    if len(shape) != 4 or min(shape) < 1:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no shape: give batch, heads, positions and head dimension, as in 4x32x2048x64")
    return shape


class Cria:
    """cria's kernel in a process of its own, timed whenever it is asked."""

    def __init__(self, program, which, shape):
        batch, heads, length, head_dim = shape
        command = [program, "pace", PASSES[which][0], "--device", "cuda", "--dtype", "bf16"]
        command += ["--batch", batch, "--heads", heads, "--seq", length, "--head-dim", head_dim]
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{' '.join(map(str, command))} ended without an answer")
        self.ready = json.loads(line)

    def sample_us(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Torch:
    """One of PyTorch's backends in a graph of many launches over rotating operands."""

    def __init__(self, backend, which, shape):
        self.backend, self.shape = backend, shape
        bytes_per_set = PASSES[which][1] * math.prod(shape) * 2
        sets = max(1, min(24, round(ROTATED_BYTES / bytes_per_set + 0.5)))
        self.stream = torch.cuda.Stream()
        with torch.cuda.stream(self.stream):
            self.works = [self.make_work(which) for _ in range(sets)]
            self.works[0]()
            self.launches = max(sets, min(256, int(SAMPLE_US / max(self.time_us(self.works[-1]), 0.1))))
        self.graph = capture(self.run_all, self.stream)

    def run_all(self):
        for turn in range(self.launches):
            self.works[turn % len(self.works)]()

    def make_work(self, which):
        """One pass over operands of its own."""
        q, k, v, dout = (torch.randn(self.shape, device="cuda", dtype=torch.bfloat16) for _ in range(4))
        if which == "forward":
            return lambda: self.attend(q, k, v)
        out = self.attend(*(x.requires_grad_() for x in (q, k, v)))
        return lambda: torch.autograd.grad(out, (q, k, v), dout, retain_graph=True)

    def attend(self, q, k, v):
        with sdpa_kernel(self.backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    def time_us(self, work):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record(self.stream)
        work()
        end.record(self.stream)
        end.synchronize()
        return start.elapsed_time(end) * 1e3

    def sample_us(self):
        with torch.cuda.stream(self.stream):
            return self.time_us(self.graph.replay) / self.launches


def race(program, which, shape, rounds):
    contenders = {"cria": Cria(program, which, shape)}
    contenders |= {name: Torch(backend, which, shape) for name, backend in RIVALS.items()}
    times = {name: [] for name in contenders}
    names = list(contenders)
    for turn in range(rounds + 2):
        for name in names[turn % 3:] + names[:turn % 3]:
            sample = contenders[name].sample_us()
            if turn >= 2:  # the first two warm up
                times[name].append(sample)
    ready = contenders["cria"].ready
    contenders["cria"].close()
    return times, ready


def summarise(which, shape, times, ready):
    batch, heads, length, head_dim = shape
    flops = PASSES[which][2] * 4 * batch * heads * length * length * head_dim / 2
    result = {"pass": which, "shape": f"B{batch} H{heads} S{length} D{head_dim}", "config": ready["config"],
              "right": ready["right"], "max_error": ready["max_error"], "target": TARGET}
    for name, samples in times.items():
        median = statistics.median(samples)
        result[name] = {"time_us": median, "tflops": flops / median * 1e-6, "samples_us": samples}
    for name in RIVALS:
        ratios = [rival / ours for ours, rival in zip(times["cria"], times[name])]
        result[f"over_{name}"] = {"median": statistics.median(ratios), "p10": quantile(ratios, 0.1),
                                  "p90": quantile(ratios, 0.9)}
    result["met"] = ready["right"] and result["over_cuDNN"]["median"] >= TARGET
    return result


def print_table(which, results):
    print(f"attention {which}, causal, bf16, TFLOP/s; ratios are medians over rounds taken in turn (p10-p90)")
    print(f"{'shape':<20}{'config':<34}{'cria':>7}{'cuDNN':>7}{'flash':>7}{'vs cuDNN':>22}{'vs flash':>9}"
          f"{'max error':>11}{'target':>8}  met")
    for r in results:
        c = r["over_cuDNN"]
        print(f"{r['shape']:<20}{r['config']:<34}{r['cria']['tflops']:>7.0f}{r['cuDNN']['tflops']:>7.0f}"
              f"{r['flash']['tflops']:>7.0f}{c['median']:>8.3f} ({c['p10']:.3f}-{c['p90']:.3f})"
              f"{r['over_flash']['median']:>9.2f}{r['max_error']:>11.1e}{'>= %.2f' % r['target']:>8}"
              f"  {'yes' if r['met'] else 'NO'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="cria_bench")
    parser.add_argument("--backward", action="store_true", help="the backward pass instead of the forward one")
    parser.add_argument("--shapes", nargs="+", type=shape_of, default=SHAPES, metavar="BxHxSxD",
                        help="batch, heads, positions and head dimension, instead of those that claims are made for")
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--json", help="write all figures to this file")
    options = parser.parse_args()
    which = "backward" if options.backward else "forward"
    results = [summarise(which, shape, *race(options.program, which, shape, options.rounds)) for shape in options.shapes]
    print_table(which, results)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"torch": torch.__version__, "device_name": torch.cuda.get_device_name(),
                       "results": results}, file, indent=2)
    met = sum(result["met"] for result in results)
    print(f"{met} of {len(results)} claims met")
    return 0 if met == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
