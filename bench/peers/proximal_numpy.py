#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trained softmax attention as one writes it in numpy: minimise sum of losses + lambda d Tr S over S >= 0 by the accelerated
proximal gradient method (FISTA) with backtracking and restarts, double precision, tokens as one tall matrix. Two tokens.
Stops at a KKT residual ||S - prox(S - step gradient)||/||S - step gradient||, step 1/(d curvature), and prints one line,
"iterations I error E seconds T"."""
import argparse
import time

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--dim", type=int, default=100)
parser.add_argument("--alpha", type=float, default=0.12)
parser.add_argument("--lambda", dest="strength", type=float, default=0.05)
parser.add_argument("--loss", choices=["logit", "cross-entropy"], default="logit")
parser.add_argument("--tolerance", type=float, default=1e-6)
parser.add_argument("--curvature", type=float, default=0.06)
parser.add_argument("--seed", type=int, default=0)
arguments = parser.parse_args()
d, loss_name = arguments.dim, arguments.loss
n, rng = round(arguments.alpha * d**2), np.random.default_rng(arguments.seed)
w = rng.standard_normal((d, d // 2))
truth = w @ w.T / np.sqrt(d * (d // 2))
x = rng.standard_normal((n, 2, d))
flat = x.reshape(2 * n, d)


def logits(s):
    p = (flat @ s).reshape(n, 2, d)
    h = np.einsum("nad,nbd->nab", p, x, optimize=True)
    h[:, [0, 1], [0, 1]] -= np.trace(s)
    return h / np.sqrt(d)


def softmax(h):
    e = np.exp(h - h.max(axis=2, keepdims=True))
    return e / e.sum(axis=2, keepdims=True)


target = logits(truth)
y = softmax(target)
log_y = np.log(y)


def evaluate(s):
    """The loss and its gradient."""
    h = logits(s)
    if loss_name == "logit":
        e = h - target
        e -= e.mean(axis=(1, 2), keepdims=True)
        value, g = 0.5 * (e**2).sum(), e
    else:
        p = softmax(h)
        value, g = (y * (log_y - np.log(p))).sum(), p - y
    g = 0.5 * (g + g.transpose(0, 2, 1))
    gradient = flat.T @ np.einsum("nab,nbd->nad", g, x, optimize=True).reshape(2 * n, d)
    gradient -= np.trace(g, axis1=1, axis2=2).sum() * np.eye(d)
    return value, gradient / np.sqrt(d)


def prox(r, threshold):
    values, vectors = np.linalg.eigh(r)
    kept = np.maximum(values - threshold, 0)
    return (vectors * kept) @ vectors.T, kept.sum()


def residual(s, gradient):
    step = 1 / (d * arguments.curvature)
    r = s - step * gradient
    return np.linalg.norm(s - prox(r, arguments.strength * d * step)[0]) / np.linalg.norm(r)


begin = time.perf_counter()
s = point = np.zeros((d, d))
lipschitz, momentum, last = d * 0.5, 1.0, np.inf
for iteration in range(1, 20001):
    value, gradient = evaluate(point)
    while True:
        following, trace = prox(point - gradient / lipschitz, arguments.strength * d / lipschitz)
        move = following - point
        new_value, new_gradient = evaluate(following)
        if new_value <= value + (gradient * move).sum() + 0.5 * lipschitz * (move**2).sum() + 1e-12 * abs(value):
            break
        lipschitz *= 2
    objective = new_value + arguments.strength * d * trace
    if iteration % 10 == 0 and residual(following, new_gradient) < arguments.tolerance:
        s = following
        break
    if objective > last:
        momentum, point = 1.0, following
    else:
        after = 0.5 * (1 + np.sqrt(1 + 4 * momentum**2))
        point = following + (momentum - 1) / after * (following - s)
        momentum = after
    s, last = following, objective
    lipschitz *= 0.98
seconds = time.perf_counter() - begin
print(f"iterations {iteration} error {((s - truth) ** 2).sum() / d:.4f} seconds {seconds:.3f}")
