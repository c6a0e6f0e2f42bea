# SPDX-License-Identifier: MIT
"""A channel and priors as a user would write them."""
import bayesaim
import numpy as np


class OneBit(bayesaim.Channel):
    """y_ab = sign(h_ab): Z = prod Phi(k), g = y phi(k)/Phi(k)/sqrt(V), k = y omega/sqrt(V)."""

    def __init__(self, tokens=2):
        super().__init__(tokens)
        a, b = np.triu_indices(tokens)
        self.upper, self.lower = a * tokens + b, b * tokens + a

    def draw(self, index, seed, first_sample):
        y = np.empty((len(index), self.tokens**2))
        y[:, self.upper] = y[:, self.lower] = np.where(index >= 0, 1.0, -1.0)
        return y

    def score(self, outputs, omega, variance):
        y = outputs[:, self.upper]
        k = y * omega / np.sqrt(variance)
        return y * bayesaim.inverse_mills_ratio(k) / np.sqrt(variance), bayesaim.log_normal_cdf(k).sum(axis=1)

    def predict(self, omega, variance):
        if variance == 0:
            return self.draw(omega, 0, 0)
        y = np.empty((len(omega), self.tokens**2))
        mean = 2 * np.exp(bayesaim.log_normal_cdf(omega / np.sqrt(variance))) - 1
        y[:, self.upper] = y[:, self.lower] = mean
        return y


class NoisyLinear(bayesaim.Channel):
    """bayesaim.Linear again, from its formulas; g without log Z."""

    def __init__(self, label_noise):
        super().__init__(2)
        self.label_noise = label_noise

    def parameters(self):
        return {"label_noise": self.label_noise}

    def draw(self, index, seed, first_sample):
        noise = self.noise(seed, first_sample, len(index), 3)
        h = index / bayesaim.pair_scales(2) + np.sqrt(self.label_noise) * noise
        return h[:, [0, 1, 1, 2]]

    def score(self, outputs, omega, variance):
        tau = bayesaim.pair_scales(2)
        return (tau * outputs[:, [0, 1, 3]] - omega) / (variance + tau**2 * self.label_noise)

    def score_power(self, overlap, error):
        return np.sum(1 / (2 * error + bayesaim.pair_scales(2) ** 2 * self.label_noise))


class TwoLayers(bayesaim.Channel):
    """y_ab = h^1_ab + e_ab h^2_ab + noise of variance label_noise, e = 1 on the diagonal and -1 off it.

    g^1 = r/s, g^2 = e g^1, r = tau y - omega^1 - e omega^2, s = V_11 + V_22 + 2 e V_12 + tau^2 label_noise.
    """

    e, upper, mirror, tau = np.array([1, -1, 1]), [0, 1, 3], [0, 1, 1, 2], bayesaim.pair_scales(2)

    def __init__(self, label_noise=0.1):
        super().__init__(2, layers=2)
        self.label_noise = label_noise

    def parameters(self):
        return {"label_noise": self.label_noise}

    def predict(self, omega, variance):
        return ((omega[:, :3] + self.e * omega[:, 3:]) / self.tau)[:, self.mirror]

    def draw(self, index, seed, first_sample):
        noise = self.noise(seed, first_sample, len(index), 3)[:, self.mirror]
        return self.predict(index, 0) + np.sqrt(self.label_noise) * noise

    def spread(self, variance):
        return np.trace(variance) + 2 * self.e * variance[0, 1] + self.tau**2 * self.label_noise

    def score(self, outputs, omega, variance):
        s, residual = self.spread(variance), self.tau * outputs[:, self.upper] - omega[:, :3] - self.e * omega[:, 3:]
        g = residual / s
        return np.hstack([g, self.e * g]), -0.5 * np.sum(residual * g + np.log(2 * np.pi * s), axis=1)

    def check_outputs(self, outputs):
        super().check_outputs(outputs)
        if not np.array_equal(outputs[:, 1], outputs[:, 2]):
            raise ValueError("outputs must be symmetric")


class TwoLayersInClosedForm(TwoLayers):
    def _slope(self, variance):
        """Sum over the pairs of -dg/domega, the same for every sample; its mean is that of g g^T."""
        signs = np.array([np.ones(3), self.e])
        return (signs / self.spread(variance)) @ signs.T

    def score_power(self, overlap, error):
        return self._slope(2 * error)

    def score_with_slope(self, outputs, omega, variance):
        return self.score(outputs, omega, variance)[0], len(omega) * self._slope(variance)


class TwoLevels(bayesaim.Prior):
    def spectrum(self):
        return [-1, 1], [0.3, 0.7]


class Semicircle(bayesaim.SpectralLaw):
    """G(z) = (z - sqrt(z^2 - 4)) / 2"""

    def mean(self):
        return 0.0

    def variance(self):
        return 1.0

    def centred_support(self):
        return [(-2.0, 2.0)]

    def _root(self, z):
        return np.sqrt(z - 2 + 0j) * np.sqrt(z + 2 + 0j)

    def stieltjes(self, z):
        root = self._root(z)
        g = 2 / (z + root)
        return g, -g / root

    def log_potential(self, z):
        g = self.stieltjes(z)[0]
        return (g * g / 2 - np.log(g)).real


class PythonWigner(bayesaim.Prior):
    def law(self):
        return Semicircle()

    def sample(self, dim, seed, index):
        rng = np.random.Generator(np.random.Philox(key=[seed, index]))
        x = rng.standard_normal((dim, dim))
        return (x + x.T) / np.sqrt(2 * dim)
