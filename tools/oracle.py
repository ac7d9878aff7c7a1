#!/usr/bin/env python3
"""Writes the goldens of the model: a plain LLaMA in float64 PyTorch on small odd sizes.

usage: oracle.py [--check] [FOLDER]      (default folder: tests/plans/goldens; --check only compares bytes)

A golden <name>.safetensors holds, rounded from float64 to F32 (I32 for tokens):
  tokens, targets [B, T] · logits [B, T, V] · weights.<name> and grads.<name> of every parameter, by Hugging Face's names
  losses [11]: before the first and after each of ten AdamW steps on this batch · grad_norms [10]: before clipping
  final_sums [P, 2]: sum and sum of squares of each parameter after the ten steps, in the order of `parameters`
and in __metadata__ strings: `config` (config.json), `parameters` (a JSON list of names), `optimizer` (JSON).
"""
import argparse
import json
import math
import pathlib
import struct
import sys

import numpy as np
import torch
from torch.nn.functional import cross_entropy, silu

OPTIMIZER = {"lr": 1e-3, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1, "clip_norm": 1.0, "steps": 10}


def model(dim, layers, heads, kv_heads, head_dim, ffn, vocab, tied, rope_theta=10000.0, rope_scaling=None):
    """Hugging Face's config.json."""
    return {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu",
            "hidden_size": dim, "num_hidden_layers": layers, "num_attention_heads": heads,
            "num_key_value_heads": kv_heads, "head_dim": head_dim, "intermediate_size": ffn, "vocab_size": vocab,
            "max_position_embeddings": 256, "tie_word_embeddings": tied, "rms_norm_eps": 1e-5,
            "rope_theta": rope_theta, "rope_scaling": rope_scaling, "attention_bias": False, "mlp_bias": False}


LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}  # the 8 frequencies of head_dim 16: 1 kept, 2 between, 5 stretched

GOLDENS = {  # name: config, batch, length
    "gqa_untied": (model(24, 2, heads=4, kv_heads=1, head_dim=6, ffn=37, vocab=53, tied=False), 3, 11),
    "mha_tied": (model(14, 1, heads=3, kv_heads=3, head_dim=4, ffn=19, vocab=17, tied=True), 2, 5),
    "wide_heads": (model(8, 1, heads=2, kv_heads=1, head_dim=64, ffn=24, vocab=40, tied=False), 2, 19),
    "llama3_rope": (model(32, 2, heads=2, kv_heads=1, head_dim=16, ffn=32, vocab=32, tied=True,
                          rope_scaling=LLAMA3), 1, 130),
}


def parameter_shapes(c):
    dim, ffn = c["hidden_size"], c["intermediate_size"]
    query, kv = c["num_attention_heads"] * c["head_dim"], c["num_key_value_heads"] * c["head_dim"]
    shapes = {"model.embed_tokens.weight": (c["vocab_size"], dim)}
    for layer in range(c["num_hidden_layers"]):
        shapes |= {f"model.layers.{layer}.{name}.weight": shape for name, shape in {
            "input_layernorm": (dim,), "self_attn.q_proj": (query, dim), "self_attn.k_proj": (kv, dim),
            "self_attn.v_proj": (kv, dim), "self_attn.o_proj": (dim, query), "post_attention_layernorm": (dim,),
            "mlp.gate_proj": (ffn, dim), "mlp.up_proj": (ffn, dim), "mlp.down_proj": (dim, ffn)}.items()}
    shapes["model.norm.weight"] = (dim,)
    if not c["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (c["vocab_size"], dim)
    return shapes


def initial_weights(c, random):
    """Matrices of Normal(0, 0.25), norms uniform in 1 +- 0.2: large enough that no gradient is trivial. F32 values."""
    return {name: (random.uniform(0.8, 1.2, shape) if len(shape) == 1 else 0.25 * random.standard_normal(shape))
            .astype(np.float32) for name, shape in parameter_shapes(c).items()}


def rms_norm(x, weight, eps):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * weight


def rope_frequencies(c):
    """Radians per position of each pair of channels, [K/2]."""
    half = c["head_dim"] // 2
    frequencies = c["rope_theta"] ** -(torch.arange(half, dtype=torch.float64) / half)
    if s := c["rope_scaling"]:
        turns = s["original_max_position_embeddings"] * frequencies / (2 * math.pi)  # within the original context
        keep = ((turns - s["low_freq_factor"]) / (s["high_freq_factor"] - s["low_freq_factor"])).clamp(0, 1)
        frequencies = keep * frequencies + (1 - keep) * frequencies / s["factor"]
    return frequencies


def rotate(x, angles):
    """Channel i turns with channel i + K/2; x is [B, heads, T, K], angles [T, K/2]."""
    a, b = x.chunk(2, -1)
    return torch.cat([a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()], -1)


def attention(c, w, x, angles):
    """x [B, T, D]; a query head reads the kv head of its group."""
    batch, length, _ = x.shape
    split = lambda y: y.view(batch, length, -1, c["head_dim"]).transpose(1, 2)
    q, k = rotate(split(x @ w["q_proj"].T), angles), rotate(split(x @ w["k_proj"].T), angles)
    v = split(x @ w["v_proj"].T)
    group = c["num_attention_heads"] // c["num_key_value_heads"]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    future = torch.ones(length, length, dtype=torch.bool).triu(1)
    scores = (q @ k.mT / math.sqrt(c["head_dim"])).masked_fill(future, -math.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2) @ w["o_proj"].T


def forward(c, weights, tokens):
    """Logits [B, T, V]."""
    angles = torch.arange(tokens.shape[1], dtype=torch.float64)[:, None] * rope_frequencies(c)
    x = weights["model.embed_tokens.weight"][tokens]
    for layer in range(c["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        w = {name.split(".")[-2]: value for name, value in weights.items() if name.startswith(prefix)}
        x = x + attention(c, w, rms_norm(x, w["input_layernorm"], c["rms_norm_eps"]), angles)
        h = rms_norm(x, w["post_attention_layernorm"], c["rms_norm_eps"])
        x = x + (silu(h @ w["gate_proj"].T) * (h @ w["up_proj"].T)) @ w["down_proj"].T
    x = rms_norm(x, weights["model.norm.weight"], c["rms_norm_eps"])
    return x @ weights.get("lm_head.weight", weights["model.embed_tokens.weight"]).T


def make_optimizer(parameters):
    groups = [{"params": [p for p in parameters if p.ndim == 2], "weight_decay": OPTIMIZER["weight_decay"]},
              {"params": [p for p in parameters if p.ndim == 1], "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=OPTIMIZER["lr"], betas=(OPTIMIZER["beta1"], OPTIMIZER["beta2"]),
                             eps=OPTIMIZER["eps"])


def golden(name):
    """The tensors and the metadata of one golden."""
    config, batch, length = GOLDENS[name]
    random = np.random.RandomState(list(GOLDENS).index(name) + 1)  # its streams are frozen across numpy versions
    initial = initial_weights(config, random)
    text = random.randint(0, config["vocab_size"], (batch, length + 1))
    tokens, targets = torch.from_numpy(text[:, :-1].copy()), torch.from_numpy(text[:, 1:].copy())
    weights = {name: torch.from_numpy(w).double().requires_grad_() for name, w in initial.items()}
    parameters = list(weights.values())
    optimizer = make_optimizer(parameters)

    losses, norms, tensors = [], [], {"tokens": tokens.int().numpy(), "targets": targets.int().numpy()}
    for step in range(OPTIMIZER["steps"] + 1):
        optimizer.zero_grad()
        logits = forward(config, weights, tokens)
        loss = cross_entropy(logits.flatten(0, 1), targets.flatten())
        losses.append(loss.item())
        if step == OPTIMIZER["steps"]:
            break
        loss.backward()
        if step == 0:
            tensors["logits"] = logits.detach().numpy()
            tensors |= {f"weights.{name}": w for name, w in initial.items()}
            tensors |= {f"grads.{name}": w.grad.numpy().copy() for name, w in weights.items()}
        norms.append(torch.nn.utils.clip_grad_norm_(parameters, OPTIMIZER["clip_norm"]).item())
        optimizer.step()
    tensors |= {"losses": np.array(losses), "grad_norms": np.array(norms),
                "final_sums": np.array([[w.sum().item(), w.square().sum().item()] for w in parameters])}
    metadata = {"config": json.dumps(config), "parameters": json.dumps(list(weights)),
                "optimizer": json.dumps(OPTIMIZER)}
    return tensors, metadata


def safetensors_bytes(tensors, metadata):
    """The same bytes every time; the `safetensors` package leaves the order of metadata to chance."""
    header, data = {"__metadata__": metadata}, b""
    for name, values in tensors.items():
        values = values.astype("<i4" if values.dtype.kind == "i" else "<f4")
        start, data = len(data), data + values.tobytes()
        header[name] = {"dtype": "I32" if values.dtype.kind == "i" else "F32", "shape": list(values.shape),
                        "data_offsets": [start, len(data)]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def main():
    root = pathlib.Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=root / "tests/plans/goldens")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file would change")
    options = parser.parse_args()
    torch.set_num_threads(1)
    files = {f"{name}.safetensors": safetensors_bytes(*golden(name)) for name in GOLDENS}
    files["README.md"] = ("# Goldens of the model\n\nMade by `tools/oracle.py` with PyTorch "
                          f"{torch.__version__.split('+')[0]} in float64; what they hold is written there.\n"
                          "Tests hold every plan on every device to them.\n").encode()
    options.folder.mkdir(parents=True, exist_ok=True)
    changed = 0
    for file, content in files.items():
        path = options.folder / file
        same = path.exists() and path.read_bytes() == content
        changed += not same
        if not options.check:
            path.write_bytes(content)
        print(f"{len(content):8} bytes  {'same' if same else 'differs' if options.check else 'written'}  {path}")
    return 1 if options.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
