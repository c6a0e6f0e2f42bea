# SPDX-License-Identifier: MIT
"""Several processes that compute together have the bits of one."""
import os
import shutil
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import bayesaim

pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(shutil.which("mpirun") is None, reason="mpirun is not installed")

WORK = textwrap.dedent(
    """
    import sys
    import bayesaim  # first, as in the process beside: it chooses the kernels of OpenBLAS
    import numpy as np

    def work():
        prior, channel = bayesaim.Wishart(0.5), bayesaim.Softmax(2)
        data = bayesaim.generate(prior, channel, dim=60, alpha=0.8, seed=2)
        amp = bayesaim.amp(data, prior, channel, max_iterations=10, threads=1)
        gd = bayesaim.gradient_descent(data, channel, width=0.5, steps=20, threads=1)
        rng = np.random.default_rng(1)
        tokens = rng.standard_normal((400, 2, 30))
        s = rng.standard_normal((30, 30))
        outputs = np.einsum("iad,de,ibe->iab", tokens, s + s.T, tokens) / 30
        fit = bayesaim.fit(tokens, outputs, channel="linear", max_iterations=8, threads=1)
        trained = bayesaim.train(data, channel=channel, regularization=0.05, max_iterations=5, threads=1)
        return np.stack([amp.estimate, gd.estimate, trained.estimate]), fit.estimate
    """
)


def test_ranks_have_the_bits_of_one_process(tmp_path):
    script = tmp_path / "ranks.py"
    script.write_text(
        WORK
        + textwrap.dedent(
            """
            from mpi4py import MPI
            with bayesaim.over_ranks(MPI.COMM_WORLD):
                together, fit = work()
            np.savez(f"{sys.argv[1]}/{MPI.COMM_WORLD.rank}.npz", together=together, fit=fit)
            """
        )
    )
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = ["mpirun", "-q", "--oversubscribe", "-n", "3", sys.executable, str(script), str(tmp_path)]
    subprocess.run(command, env=environment, check=True, timeout=200)
    names: dict = {}
    exec(WORK, names)
    together, fit = names["work"]()
    for rank in range(3):
        result = np.load(tmp_path / f"{rank}.npz")
        assert np.array_equal(result["together"], together)
        assert np.array_equal(result["fit"], fit)


def test_a_communicator_of_something_else_is_refused():
    with pytest.raises(TypeError, match="communicator must be one of mpi4py, got int"):
        with bayesaim.over_ranks(3):
            pass
