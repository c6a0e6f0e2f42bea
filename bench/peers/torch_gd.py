#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The gradient-descent experiment as one writes it in PyTorch: full batch, Adam(lr = 0.1), softmax attention, T = 2, alpha =
0.12. Arguments: dim, threads, float or double, tied or cross (two queries, two keys), width (0.5). Prints milliseconds per step,
the best of several rounds."""
import math
import sys
import time

import torch

dim, threads, precision = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
torch.set_num_threads(threads)
torch.set_default_dtype(torch.float64 if precision == "double" else torch.float32)
torch.manual_seed(0)
ratio = float(sys.argv[5]) if len(sys.argv) > 5 else 0.5
tokens, width, samples = 2, round(ratio * dim), round(0.12 * dim**2)
X, Z, eye = torch.randn(samples, tokens, dim), torch.randn(samples, tokens, dim), torch.eye(tokens)


def tied(W):
    P = X @ W
    return torch.softmax((P @ P.transpose(1, 2) - eye * (W * W).sum()) / (math.sqrt(width) * dim), -1)


def cross(W_Q, W_K):
    return torch.softmax((X @ W_Q) @ (Z @ W_K).transpose(1, 2) / (math.sqrt(width) * dim), -1)


attention, factors = (cross, 2) if sys.argv[4:5] == ["cross"] else (tied, 1)
with torch.no_grad():
    y = attention(*(torch.randn(dim, width) for _ in range(factors)))
W = [torch.randn(dim, width, requires_grad=True) for _ in range(factors)]
adam = torch.optim.Adam(W, lr=0.1)
steps = max(5, 3_000_000 // dim**3 * 10)
best = math.inf
for _ in range(8):
    start = time.perf_counter()
    for _ in range(steps):
        adam.zero_grad()
        ((y - attention(*W)) ** 2).sum().backward()
        adam.step()
    best = min(best, 1e3 * (time.perf_counter() - start) / steps)
print(best)
