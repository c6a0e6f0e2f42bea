#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Approximate message passing as one writes it in numpy: softmax tied attention, S = W W'/sqrt(r d), double precision.
The sensing matrices are never formed. The spectral density comes from the roots of the cubic equation for the Stieltjes
transform G of the noisy spectrum (noise variance D, s = sqrt(width)):
    (D/s) G^3 - (z/s + D) G^2 + (z + 1/s - s) G - 1 = 0
The plain version calls np.roots once per point and multiplies stacks of T x d matrices, as the notebooks of the field do.
With --tuned one call solves the cubics of all points, and the tokens are multiplied as one tall matrix.
Prints one line, "error E seconds_per_iteration T"."""
import argparse
import time

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--dim", type=int, default=100)
parser.add_argument("--width", type=float, default=0.5)
parser.add_argument("--alpha", type=float, default=0.12)
parser.add_argument("--tokens", type=int, default=2)
parser.add_argument("--iterations", type=int, default=50)
parser.add_argument("--damping", type=float, default=0.5)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--tuned", action="store_true")
arguments = parser.parse_args()
dim, tokens, damping = arguments.dim, arguments.tokens, arguments.damping
rank, samples = round(arguments.width * dim), round(arguments.alpha * dim**2)
s = np.sqrt(arguments.width)


def stieltjes(z, noise):
    """G of mu_D at the points z: of the three roots, the one with the largest imaginary part."""
    if not arguments.tuned:
        triples = (np.roots([noise / s, -(x / s + noise), x + 1 / s - s, -1]) for x in z)
        return np.array([triple[triple.imag.argmax()] for triple in triples])
    companion = np.zeros((len(z), 3, 3), dtype=complex)  # its eigenvalues are the roots
    companion[:, 0, 0] = (z / s + noise) * s / noise
    companion[:, 0, 1] = -(z + 1 / s - s) * s / noise
    companion[:, 0, 2] = s / noise
    companion[:, 1, 0] = companion[:, 2, 1] = 1
    roots = np.linalg.eigvals(companion)
    return roots[np.arange(len(z)), roots.imag.argmax(axis=1)]


def denoise(noisy, noise):
    """Bayes-optimal shrinkage of the eigenvalues: lambda - 2 D Re G(lambda)."""
    values, vectors = np.linalg.eigh(noisy)
    return (vectors * (values - 2 * noise * stieltjes(values - 1e-9j, noise).real)) @ vectors.T


def bulk_edges(noise):
    """The real zeros of the discriminant of a G^3 + b G^2 + c G + e, a polynomial in z."""
    z = np.polynomial.Polynomial([0, 1])
    a, b, c, e = noise / s, -(z / s + noise), z + 1 / s - s, -1
    zeros = (18 * a * b * c * e - 4 * b**3 * e + b**2 * c**2 - 4 * a * c**3 - 27 * a**2 * e**2).roots()
    return np.sort(zeros[abs(zeros.imag) < 1e-7 * np.maximum(1, abs(zeros))].real)


def mmse(noise, nodes=150):
    """D - (4 pi^2/3) D^2 int density^3, by the midpoint rule in the angle on each bulk."""
    angle = (np.arange(nodes) + 0.5) * np.pi / nodes
    edges = bulk_edges(noise)
    cubes = 0.0
    for low, high in zip(edges[::2], edges[1::2]):
        centre, half = (low + high) / 2, (high - low) / 2
        density = np.maximum(0, stieltjes(centre - half * np.cos(angle), noise).imag) / np.pi
        cubes += np.sum(half * np.sin(angle) * density**3) * np.pi / nodes
    return noise - 4 * np.pi**2 / 3 * noise**2 * cubes


rng = np.random.default_rng(arguments.seed)
W = rng.standard_normal((dim, rank))
truth = W @ W.T / np.sqrt(rank * dim)
X = rng.standard_normal((samples, tokens, dim))
flat, eye = X.reshape(-1, dim), np.eye(tokens)
tau = np.sqrt(2 - eye)
pairs = np.triu_indices(tokens)


def indices(S):
    """h_ab = (x_a' S x_b - delta_ab Tr S)/sqrt(d), times tau_ab."""
    XS = (flat @ S).reshape(X.shape) if arguments.tuned else X @ S
    return tau * (np.einsum("nai,nbi->nab", XS, X) - eye * np.trace(S)) / np.sqrt(dim)


# The outputs y = softmax(h) give h up to one constant per sample: m = h - h_TT, from log y and the symmetry of h.
h = indices(truth) / tau
top = h.max(axis=2, keepdims=True)
log_y = h - top - np.log(np.exp(h - top).sum(axis=2, keepdims=True))
difference = log_y - log_y[:, :, -1:]  # h_ab - h_aT
m = tau * (difference + difference[:, -1, :, None])  # h_ab - h_aT + h_Ta - h_TT

estimate, error = s * np.eye(dim), 1.0  # mean and variance of the prior
g = np.zeros((samples, tokens, tokens))
omega = variance = None
start = time.perf_counter()
for _ in range(arguments.iterations):
    next_variance = 2 * error
    next_omega = indices(estimate) - next_variance * g
    if omega is None:
        omega, variance = next_omega, next_variance
    else:
        omega = damping * omega + (1 - damping) * next_omega
        variance = damping * variance + (1 - damping) * next_variance
    # g = (r - tau (tau.r)/T^2)/V: the direction tau of the indices is not observed.
    residual = m - omega
    unseen = (tau * residual)[:, pairs[0], pairs[1]].sum(axis=1) / tokens**2
    g = (residual - tau * unseen[:, None, None]) / variance
    precision = 4 / dim**2 * np.sum(g[:, pairs[0], pairs[1]] ** 2)
    # sum g_ab Z_ab = (X' G X - Tr(G) I)/sqrt(d)
    G = g * tau / 2 + eye * g / 2
    gradient = (flat.T @ np.einsum("nab,nbi->nai", G, X).reshape(-1, dim) - np.eye(dim) * np.trace(G, axis1=1, axis2=2).sum()) / np.sqrt(dim)
    noisy = estimate + 2 / (dim * precision) * gradient
    estimate = denoise((noisy + noisy.T) / 2, 1 / precision)
    error = mmse(1 / precision)
seconds = (time.perf_counter() - start) / arguments.iterations
print(f"error {np.sum((estimate - truth) ** 2) / dim:.4f} seconds_per_iteration {seconds:.5f}")
