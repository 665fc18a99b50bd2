# SPDX-FileCopyrightText: 2026 The Carousel authors
# SPDX-License-Identifier: Apache-2.0
"""GPT-2 (Radford et al. 2019) in PyTorch, with nanoGPT's parameter names, and a network of Llama's kind:
what inputs/networks/gpt.toml and llama.toml list."""

import torch
from torch import nn
from torch.nn import functional


def attend(x, heads, turn=lambda part: part):
    """Of queries, keys and values, one behind the other; the first two are turned."""
    samples, tokens, width = x.shape
    q, k, v = (part.reshape(samples, tokens, heads, -1).transpose(1, 2)
               for part in x.chunk(3, dim=2))
    y = functional.scaled_dot_product_attention(turn(q), turn(k), v, is_causal=True)
    return y.transpose(1, 2).reshape(samples, tokens, width // 3)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.c_attn = nn.Linear(width, 3 * width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x):
        return self.c_proj(attend(self.c_attn(x), self.heads))


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.c_fc = nn.Linear(width, 4 * width)
        self.c_proj = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.c_proj(functional.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.ln_1 = nn.LayerNorm(width)
        self.attn = Attention(width, heads)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = Mlp(width)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """Of tokens [n, 1, t, 1], in numbers of any type, scores [n, vocabulary, t]."""

    def __init__(self, vocabulary, context, width, depth, heads):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(vocabulary, width), "wpe": nn.Embedding(context, width),
            "h": nn.ModuleList(Block(width, heads) for _ in range(depth)), "ln_f": nn.LayerNorm(width)})
        self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        tokens = tokens.reshape(len(tokens), -1).long()
        x = self.transformer.wte(tokens) + self.transformer.wpe(torch.arange(tokens.shape[1]))
        for block in self.transformer.h:
            x = block(x)
        return self.lm_head(self.transformer.ln_f(x)).transpose(1, 2)


def rotate(x, base=10000):
    """Rotary positions (Su et al. 2021, arXiv 2104.09864) of heads [n, heads, tokens, size]: pairs of
    features, one of either half, as complex numbers."""
    tokens, size = x.shape[2:]
    rates = base ** (-torch.arange(size // 2, dtype=torch.float64) * 2 / size)
    angles = torch.outer(torch.arange(tokens, dtype=torch.float64), rates)
    turned = torch.complex(*x.chunk(2, dim=3)) * torch.polar(torch.ones_like(angles), angles).to(
        torch.complex128 if x.dtype == torch.float64 else torch.complex64)
    return torch.cat([turned.real, turned.imag], dim=3)


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.heads = heads
        self.attention_norm = nn.RMSNorm(width, eps=1e-6)
        self.attention = nn.ModuleDict({"wqkv": nn.Linear(width, 3 * width, bias=False),
                                        "wo": nn.Linear(width, width, bias=False)})
        self.ffn_norm = nn.RMSNorm(width, eps=1e-6)
        self.feed_forward = nn.ModuleDict({"w1": nn.Linear(width, hidden, bias=False),
                                           "w2": nn.Linear(hidden, width, bias=False),
                                           "w3": nn.Linear(width, hidden, bias=False)})

    def forward(self, x):
        seen = attend(self.attention["wqkv"](self.attention_norm(x)), self.heads, rotate)
        x = x + self.attention["wo"](seen)
        z, forward = self.ffn_norm(x), self.feed_forward
        return x + forward["w2"](functional.silu(forward["w1"](z)) * forward["w3"](z))


class Llama(nn.Module):
    """As Gpt."""

    def __init__(self, vocabulary, width, depth, heads, hidden):
        super().__init__()
        self.tok_embeddings = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaBlock(width, heads, hidden) for _ in range(depth))
        self.norm = nn.RMSNorm(width, eps=1e-6)
        self.output = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens):
        x = self.tok_embeddings(tokens.reshape(len(tokens), -1).long())
        for block in self.layers:
            x = block(x)
        return self.output(self.norm(x)).transpose(1, 2)
