# SPDX-License-Identifier: MIT
"""10,000 calls leave no memory behind: neither of C++ nor objects of Python."""
import ctypes
import gc
import sys

import bayesaim
import numpy as np
import pytest
from own_models import OneBit, TwoLevels

WARM_UP, CALLS = 20, 400


class Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]


def bytes_in_use():
    """What malloc has given out, by glibc or by the sanitizer that has replaced it."""
    process = ctypes.CDLL(None)
    count = getattr(process, "__sanitizer_get_current_allocated_bytes", None)
    if count is None:
        process.mallinfo2.restype = Mallinfo2
        info = process.mallinfo2()
        return info.uordblks + info.hblkhd
    count.restype = ctypes.c_size_t
    return count()


PRIOR, SOFTMAX = bayesaim.Wishart(0.5), bayesaim.Softmax(2)
UNTIED, CAUSAL = bayesaim.Bilinear(0.5), bayesaim.make_channel("softmax", tokens=2, attention="causal")
DATA = bayesaim.generate(PRIOR, SOFTMAX, dim=6, alpha=0.5, seed=1)
TWO = bayesaim.generate(PRIOR, bayesaim.DeepAttention(2), dim=6, alpha=0.5)
MATRIX = bayesaim.goe(6, seed=1)
STUDY = 'estimator = "theory"\nalpha = "0.1,0.2"'


def wrong(call):
    """A call that fails: the exception keeps nothing either."""
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        call()


def wrong_score():
    class Broken(OneBit):
        def score(self, outputs, omega, variance):
            raise ValueError("broken")

    with pytest.raises(ValueError):
        bayesaim.amp(DATA, PRIOR, Broken(), max_iterations=1, threads=1)


CASES = {
    "theory": lambda: bayesaim.theory(PRIOR, SOFTMAX, [0.05, 0.1], threads=1),
    "theory of untied attention": lambda: bayesaim.theory(UNTIED, CAUSAL, [0.05], threads=1),
    "theory of training": lambda: bayesaim.theory(PRIOR, SOFTMAX, [0.1], estimator="erm", regularization=0.05, threads=1),
    "thresholds": lambda: bayesaim.thresholds(PRIOR, SOFTMAX),
    "trajectory": lambda: bayesaim.trajectory(PRIOR, SOFTMAX, 0.1, iterations=3),
    "spectrum": lambda: bayesaim.Spectrum(TwoLevels(), 0.1).density(np.linspace(-1, 1, 5)),
    "mmse": lambda: bayesaim.mmse(PRIOR, [0.1, 0.2], threads=1),
    "denoise": lambda: bayesaim.denoise(PRIOR, MATRIX, 0.5),
    "data": lambda: bayesaim.generate(PRIOR, SOFTMAX, dim=6, alpha=0.5, seed=1).tokens,
    "dataset of arrays": lambda: bayesaim.Dataset(DATA.tokens.copy(), DATA.outputs.copy()),
    "AMP": lambda: bayesaim.amp(DATA, PRIOR, SOFTMAX, max_iterations=3, threads=1),
    "AMP with a callback": lambda: bayesaim.amp(DATA, PRIOR, SOFTMAX, max_iterations=3, threads=2, progress=lambda *_: True),
    "AMP with a channel of Python": lambda: bayesaim.amp(DATA, PRIOR, OneBit(), max_iterations=2, threads=2),
    "gradient descent": lambda: bayesaim.gradient_descent(DATA, SOFTMAX, width=0.5, steps=3, threads=1),
    "training": lambda: bayesaim.train(DATA, regularization=0.1, max_iterations=3, threads=1),
    "prediction": lambda: bayesaim.predict(DATA.tokens, MATRIX, SOFTMAX, error=0.3),
    "prediction from AMP": lambda: bayesaim.predict(DATA, bayesaim.amp(DATA, PRIOR, SOFTMAX, max_iterations=1), SOFTMAX),
    "spectrum of training": lambda: bayesaim.TrainedSpectrum(PRIOR, SOFTMAX, 0.1, regularization=0).density([0.0, 1.0]),
    "two layers": lambda: bayesaim.layers.encode(TWO.tokens, TWO.weights),
    "joint denoisers": lambda: bayesaim.layers.covariance([PRIOR, TwoLevels()], [[2, 0.3], [0.3, 2]]),
    "studies": lambda: bayesaim.parse_experiment(STUDY),
    "models": lambda: (bayesaim.make_prior("wishart", width=0.5), bayesaim.make_channel("hardmax", tokens=3)),
    "mistakes": lambda: wrong(lambda: bayesaim.theory(PRIOR, SOFTMAX, [-1.0])),
    "wrong types": lambda: wrong(lambda: bayesaim.Wishart(DATA, MATRIX)),
    "mistakes in a channel of Python": wrong_score,
}


def test_the_calls_are_ten_thousand():
    assert len(CASES) * CALLS == 10_000


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore")
def test_calls_leave_no_memory_behind(case):
    for _ in range(WARM_UP):
        CASES[case]()
    for _ in range(4):
        gc.collect()
        memory, blocks = bytes_in_use(), sys.getallocatedblocks()
        for _ in range(CALLS):
            CASES[case]()
        gc.collect()
        memory, blocks = bytes_in_use() - memory, sys.getallocatedblocks() - blocks
        # The smallest leak is 16 bytes, or one block, a call. Caches of the interpreter grow for
        # some rounds, a leak in every one.
        if memory < 14 * CALLS and blocks < 0.9 * CALLS:
            return
    pytest.fail(f"{CALLS} calls keep {memory} bytes and {blocks} objects of Python")
