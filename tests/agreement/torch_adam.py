#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""PyTorch's Adam on data written by the test GradientDescent.FollowsPyTorch: reads a file of doubles (samples, tokens, dim,
width, beta, learning rate, steps; then tokens, outputs and W row by row) and prints the loss before every step and after the
last, then W. The stored numbers are from Debian 12's python3-torch 1.13:
    BAYESAIM_KEEP=data.bin bayesaim_agreement_tests --gtest_filter='*FollowsPyTorch'
    /usr/bin/python3 tests/agreement/torch_adam.py data.bin > tests/agreement/torch_adam.txt"""
import math
import sys

import numpy
import torch

data = torch.from_numpy(numpy.fromfile(sys.argv[1]))
n, T, d, r, beta, rate, steps = data[:7].tolist()
n, T, d, r, steps = int(n), int(T), int(d), int(r), int(steps)
X, y, W = (part.clone() for part in torch.split(data[7:], [n * T * d, n * T * T, d * r]))
X, y, W = X.reshape(n, T, d), y.reshape(n, T, T), W.reshape(d, r).requires_grad_()
adam = torch.optim.Adam([W], lr=rate)
eye = torch.eye(T, dtype=torch.float64)


def loss():
    P = X @ W
    h = (P @ P.transpose(1, 2) - eye * (W * W).sum()) / (math.sqrt(r) * d)
    return ((y - torch.softmax(beta * h, -1)) ** 2).sum()


for _ in range(steps):
    adam.zero_grad()
    value = loss()
    print(repr(value.item()))
    value.backward()
    adam.step()
print(repr(loss().item()))
for entry in W.flatten().tolist():
    print(repr(entry))
