#!/usr/bin/env python3
"""PyTorch's training step (forward, backward, fused AdamW) on cria's presets; a JSON line for each figure.

usage: train.py [--configs small medium] [--modes compiled-tf32 compiled-bf16] [--clips 0 1.0] [--attention cudnn]
       train.py --self-test      on a CPU: the model against tools/oracle.py, and a few steps in every eager mode
"""
import argparse
import gc
import importlib.util
import json
import pathlib
import sys
import time

import torch

from llama import CONFIGS, Config, Llama
from timing import capture, spread, times_ms

MODES = {  # what activations are held in, precision of fp32 products, compiler; compiled steps are whole CUDA graphs
    "eager-fp32": (torch.float32, "highest", None),
    "eager-tf32": (torch.float32, "high", None),
    "eager-bf16": (torch.bfloat16, "highest", None),
    "compiled-tf32": (torch.float32, "high", "default"),
    "compiled-bf16": (torch.bfloat16, "highest", "default"),
    "tuned-bf16": (torch.bfloat16, "highest", "max-autotune-no-cudagraphs"),  # minutes of compiling
}


def make_optimizer(model, device):
    matrices = [p for p in model.parameters() if p.ndim == 2]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=3e-4, betas=(0.9, 0.95), eps=1e-8, fused=True, capturable=device == "cuda")


class Trainer:
    """A model, its optimizer and one batch; step() trains on it."""

    def __init__(self, config, mode, device):
        dtype, precision, compiler = MODES[mode]
        torch.set_float32_matmul_precision(precision)
        torch.manual_seed(0)
        self.model = Llama(config, dtype).to(device)
        self.loss_of = self.model
        if compiler:
            self.loss_of = torch.compile(self.model, mode=compiler, fullgraph=True, dynamic=False)
        self.parameters = list(self.model.parameters())
        self.optimizer = make_optimizer(self.model, device)
        text = torch.randint(0, config.vocab, (config.batch, config.seq + 1), device=device)
        self.tokens, self.targets = text[:, :-1].contiguous(), text[:, 1:].contiguous()
        self.clip = 0.0

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        self.loss = self.loss_of(self.tokens, self.targets)
        self.loss.backward()
        if self.clip:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.clip)
        self.optimizer.step()


def choose_attention(name, dtype):
    """Exactly one of PyTorch's kernels, so that none is replaced in silence; fp32 knows only one."""
    chosen = name if dtype == torch.bfloat16 else "efficient"
    torch.backends.cuda.enable_cudnn_sdp(chosen == "cudnn")
    torch.backends.cuda.enable_flash_sdp(chosen == "flash")
    torch.backends.cuda.enable_mem_efficient_sdp(chosen == "efficient")
    torch.backends.cuda.enable_math_sdp(False)
    return chosen


def measure(config_name, mode, attention, clips):
    config = CONFIGS[config_name]
    dtype, _, compiler = MODES[mode]
    kernel = choose_attention(attention, dtype)
    torch.compiler.reset()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):  # one stream for all: autograd remembers where parameters were first used
        trainer = Trainer(config, mode, "cuda")
        start = time.perf_counter()
        trainer.step()
        loss_first = trainer.loss.item()
        compile_s = time.perf_counter() - start
        for clip in clips:
            trainer.clip = clip
            for _ in range(3):
                trainer.step()
            trainer.optimizer.zero_grad(set_to_none=True)
            trainer.loss = None
            torch.cuda.synchronize()
            gc.collect()
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
            graph = capture(trainer.step, stream) if compiler else None
            times = times_ms(graph.replay) if graph else times_ms(trainer.step, seconds=0.3)
            result = {"mode": mode, "config": config_name, "clip": clip, "attention": kernel, **spread(times)}
            result |= {"samples_per_s": config.batch / result["ms"] * 1e3,
                       "tokens_per_s": config.batch * config.seq / result["ms"] * 1e3,
                       "peak_mib": torch.cuda.max_memory_allocated() / 2**20, "loss_first": loss_first,
                       "loss_last": trainer.loss.item(), "compile_s": compile_s, "torch": torch.__version__,
                       "device": torch.cuda.get_device_name()}
            print(json.dumps(result), flush=True)
            del graph


def measured(config, mode, attention, clips):
    """Whether it could be: what PyTorch cannot run leaves the rest, and cuDNN's attention a second try with flash; the
    figures name the kernel that ran."""
    for kernel in dict.fromkeys([attention, "flash"]):
        try:
            measure(config, mode, kernel, clips)
            return True
        except (RuntimeError, AssertionError) as error:
            print(f"{mode} {config} ({kernel}): {error}", file=sys.stderr)
        finally:
            gc.collect()
            torch.cuda.empty_cache()
    return False


def oracle_difference():
    """The largest difference from the oracle in the loss or a gradient, with weights that make none trivial."""
    path = pathlib.Path(__file__).resolve().parents[2] / "tools/oracle.py"
    spec = importlib.util.spec_from_file_location("oracle", path)
    oracle = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(oracle)
    c = Config(24, 2, 4, 2, 8, 36, 40, batch=2, seq=9)
    model = Llama(c)
    sizes = oracle.model(c.dim, c.layers, c.heads, c.kv_heads, c.head_dim, c.ffn, c.vocab, tied=True)
    random = oracle.np.random.RandomState(0)
    weights = {name: torch.from_numpy(w).double().requires_grad_()
               for name, w in oracle.initial_weights(sizes, random).items()}
    text = torch.from_numpy(random.randint(0, c.vocab, (c.batch, c.seq + 1)))
    tokens, targets = text[:, :-1], text[:, 1:]
    expected = oracle.cross_entropy(oracle.forward(sizes, weights, tokens).flatten(0, 1), targets.flatten())
    expected.backward()

    parts = {"embedding": ["model.embed_tokens"], "final_norm": ["model.norm"]}
    for layer in range(c.layers):
        parts |= {f"blocks.{layer}.{ours}": [f"model.layers.{layer}.{name}" for name in names] for ours, names in {
            "attention_norm": ["input_layernorm"], "ffn_norm": ["post_attention_layernorm"],
            "qkv": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"], "out": ["self_attn.o_proj"],
            "gate_up": ["mlp.gate_proj", "mlp.up_proj"], "down": ["mlp.down_proj"]}.items()}
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.cat([weights[f"{part}.weight"] for part in parts[name]]))
    loss = model(tokens, targets)
    loss.backward()
    differences = [abs(loss.item() - expected.item())]
    for name, parameter in model.named_parameters():
        gradient = torch.cat([weights[f"{part}.weight"].grad for part in parts[name]])
        differences.append((parameter.grad - gradient).abs().max().item())
    return max(differences)


def self_test():
    difference = oracle_difference()
    right = difference < 1e-5
    print(f"loss and gradients against the oracle: {difference:.1e} {'(right)' if right else '(WRONG)'}")
    for mode in [mode for mode, (_, _, compiler) in MODES.items() if not compiler]:
        trainer, losses = Trainer(CONFIGS["debug"], mode, "cpu"), []
        trainer.clip = 1.0
        for _ in range(20):
            trainer.step()
            losses.append(trainer.loss.item())
        falls = losses[-1] < losses[0]
        right &= falls
        print(f"{mode}: the loss {'falls' if falls else 'DOES NOT fall'} from {losses[0]:.3f} to {losses[-1]:.3f}")
    return 0 if right else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--configs", nargs="+", choices=CONFIGS, default=["small", "medium"])
    parser.add_argument("--modes", nargs="+", choices=MODES, default=["compiled-tf32", "compiled-bf16"])
    parser.add_argument("--attention", choices=["cudnn", "flash"], default="cudnn", help="the kernel in bf16")
    parser.add_argument("--clips", type=float, nargs="+", metavar="NORM", default=[0.0],
                        help="measure with gradients clipped to each norm; 0: not clipped")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    if not torch.cuda.is_available():
        print("PyTorch sees no GPU: run this on a GPU machine, or --self-test here.", file=sys.stderr)
        return 2
    missing = [(config, mode) for config in options.configs for mode in options.modes
               if not measured(config, mode, options.attention, options.clips)]
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
