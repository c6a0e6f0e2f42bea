#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The way the field computes a Bayes-optimal softmax curve today: the density of the noisy spectrum from the cubic's root
just above the real axis, scipy's quad for the integral of its cube, and a scalar root finder around that.
Prints one JSON object: seconds per point, and the errors."""
import json
import sys
import time

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq

width, tokens = 0.5, 2
alphas = [float(a) for a in sys.argv[1:]] or [0.05, 0.1, 0.15]
s = np.sqrt(width)


def density(x, noise):
    z = x - 1e-4j
    return np.roots([noise / s, -(z / s + noise), z + 1 / s - s, -1]).imag.max() / np.pi


def mmse(noise):
    reach = 2 * np.sqrt(noise)
    cube = quad(lambda x: density(x, noise) ** 3, min(0, 1 / s + s - 2) - reach, 1 / s + s + 2 + reach, limit=200)[0]
    return noise - 4 * np.pi**2 / 3 * noise**2 * cube


start = time.perf_counter()
errors = []
for alpha in alphas:
    c = alpha * (tokens**2 + tokens - 2)
    noise = brentq(lambda d: mmse(d) / d - c, 1e-3, 1 / c, xtol=1e-8)
    errors.append(c * noise)
print(json.dumps({"seconds_per_point": (time.perf_counter() - start) / len(alphas), "errors": errors}))
