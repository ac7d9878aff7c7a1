"""The LLaMA that cria is measured against, written for speed in PyTorch: one product for Q, K and V, one for gate and
up, library attention, and in bf16 a residual stream in bf16 over fp32 weights (autocast)."""
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Config:
    dim: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    batch: int
    seq: int
    norm_eps: float = 1e-5
    rope_theta: float = 10000.0


CONFIGS = {  # cria's presets, and sizes of bench/train; the head is the embedding
    "debug": Config(64, 2, 4, 2, 16, 160, 256, batch=2, seq=32),
    "small": Config(512, 8, 8, 4, 64, 2048, 1000, batch=8, seq=128),
    "medium": Config(1024, 12, 16, 8, 64, 4096, 1000, batch=16, seq=512),
    "odd-ffn": Config(2048, 4, 32, 32, 64, 5468, 1000, batch=4, seq=512),
    "gpt2": Config(768, 12, 12, 12, 64, 2048, 50257, batch=16, seq=1024),
}


def rotate(x, cos, sin):
    """Channel i turns with channel i + K/2; x [B, T, heads, K], cos and sin [T, 1, K/2]."""
    a, b = x.float().chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)


def norm(x, weight, eps):
    return F.rms_norm(x, weight.shape, weight.to(x.dtype), eps)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.attention_norm = nn.Parameter(torch.ones(c.dim))
        self.qkv = nn.Parameter(torch.empty((c.heads + 2 * c.kv_heads) * c.head_dim, c.dim))
        self.out = nn.Parameter(torch.empty(c.dim, c.heads * c.head_dim))
        self.ffn_norm = nn.Parameter(torch.ones(c.dim))
        self.gate_up = nn.Parameter(torch.empty(2 * c.ffn, c.dim))
        self.down = nn.Parameter(torch.empty(c.dim, c.ffn))

    def attention(self, x, cos, sin):
        c = self.c
        heads = F.linear(x, self.qkv).unflatten(-1, (-1, c.head_dim))
        q, k, v = heads.split([c.heads, c.kv_heads, c.kv_heads], 2)
        q, k, v = rotate(q, cos, sin).transpose(1, 2), rotate(k, cos, sin).transpose(1, 2), v.transpose(1, 2)
        grouped = x.dtype != torch.float32  # the only fp32 kernel on a GPU wants as many kv heads as heads
        if not grouped:
            k, v = (y.repeat_interleave(c.heads // c.kv_heads, 1) for y in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped)
        return F.linear(y.transpose(1, 2).flatten(2), self.out)

    def forward(self, x, cos, sin):
        x = x + self.attention(norm(x, self.attention_norm, self.c.norm_eps), cos, sin)
        gate, up = F.linear(norm(x, self.ffn_norm, self.c.norm_eps), self.gate_up).chunk(2, -1)
        return x + F.linear(F.silu(gate) * up, self.down)


class Llama(nn.Module):
    def __init__(self, c, dtype=torch.float32):
        super().__init__()
        self.c, self.dtype = c, dtype
        self.embedding = nn.Parameter(torch.empty(c.vocab, c.dim))
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.final_norm = nn.Parameter(torch.ones(c.dim))
        half = c.head_dim // 2
        frequencies = c.rope_theta ** -(torch.arange(half, dtype=torch.float64) / half)
        angles = torch.arange(c.seq, dtype=torch.float64)[:, None, None] * frequencies
        self.register_buffer("cos", angles.cos().float())
        self.register_buffer("sin", angles.sin().float())
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, tokens, targets):
        """The mean loss over all positions."""
        with torch.autocast(tokens.device.type, dtype=torch.bfloat16, enabled=self.dtype == torch.bfloat16):
            x = F.embedding(tokens, self.embedding).to(self.dtype)
            for block in self.blocks:
                x = block(x, self.cos, self.sin)
            logits = F.linear(norm(x, self.final_norm, self.c.norm_eps), self.embedding)
            return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())
