# SPDX-License-Identifier: MIT
import json
import os
import subprocess
import sys

import bayesaim  # before numpy: OpenBLAS then runs on the kernels that the program runs on
import pytest

PATIENCE = 1200 if "BAYESAIM_SANITIZED" in os.environ else 200  # seconds


def pytest_configure(config):
    # Most tests stop early on purpose; test_convergence.py is about the warning.
    config.addinivalue_line("filterwarnings", "ignore::bayesaim.ConvergenceWarning")


@pytest.fixture
def prior():
    return bayesaim.Wishart(0.5)


@pytest.fixture
def softmax():
    return bayesaim.Softmax(2)


@pytest.fixture
def data(prior, softmax):
    return bayesaim.generate(prior, softmax, dim=30, alpha=0.12, seed=1)


@pytest.fixture
def program():
    """The command-line program: its JSON."""

    def run(*arguments, status=(0,)):
        run = subprocess.run(
            [os.environ["BAYESAIM_PROGRAM"], *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE
        )
        assert run.returncode in status, run.stderr
        return json.loads(run.stdout) if "json" in arguments else run.stdout

    return run


@pytest.fixture
def script():
    """Runs Python code in a process of its own: what it prints."""

    def run(code, cwd=None, **environment):
        environment = {**os.environ, **environment}
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, cwd=cwd, env=environment)
        assert run.returncode == 0, run.stderr
        return run.stdout.strip()

    return run
