# SPDX-License-Identifier: MIT
"""The module as a guest in a process: interrupts, memory, threads, installation."""
import importlib.util
import os
import signal
import subprocess
import sys
import time

import pytest

LONG_RUNS = {
    "amp": "bayesaim.amp(bayesaim.generate(p, c, dim=60, alpha=0.15), p, c, tolerance=1e-300, max_iterations=10**6)",
    "gradient_descent": "bayesaim.gradient_descent(bayesaim.generate(p, c, dim=60, alpha=0.15), c, width=0.5, steps=10**7)",
    "theory": "bayesaim.theory(p, bayesaim.Hardmax(2), np.geomspace(0.1, 10, 10**5))",
    "theory of two layers": "bayesaim.theory(p, bayesaim.DeepAttention(2), [0.2] * 10**5, integration_points=2)",
    "train": "bayesaim.train(bayesaim.generate(p, c, dim=60, alpha=0.15), channel=c, regularization=0.01, tolerance=1e-300, max_iterations=10**7)",
    "erm": "bayesaim.erm(p, c, 0.12, regularization=0.05, dim=60, seeds=10**5)",
    "theory of training": "bayesaim.theory(p, c, [0.12] * 10**4, estimator='erm', loss='cross-entropy', regularization=0.05)",
    "spectrum of training": "bayesaim.TrainedSpectrum(p, bayesaim.Softmax(3), 0.06, loss='cross-entropy', regularization='optimal')",
    "mmse": "bayesaim.mmse(p, np.geomspace(0.1, 10, 10**7))",
    "sweep": "bayesaim.sweep(bayesaim.parse_experiment('estimator = \"amp\"\\nalpha = 0.15\\ndim = 60\\nmax_iterations = 1000000\\ntolerance = 1e-300\\nseeds=2'), sys.argv[1])",
}


@pytest.mark.parametrize("run", LONG_RUNS)
def test_ctrl_c_stops(run, tmp_path):
    code = f"""
import sys, bayesaim, numpy as np
p, c = bayesaim.Wishart(0.5), bayesaim.Softmax(2)
print("ready", flush=True)
try:
    {LONG_RUNS[run]}
except KeyboardInterrupt:
    print("stopped")
"""
    process = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[0] == "stopped\n"
    finally:
        process.kill()


def test_other_python_threads_go_on(script):
    code = """
import bayesaim, threading
count, stop = 0, threading.Event()
def work():
    global count
    while not stop.is_set():
        count += 1
thread = threading.Thread(target=work); thread.start()
p, c = bayesaim.Wishart(0.5), bayesaim.Softmax(2)
before = count
bayesaim.mmse(p, [0.1] * 20000, threads=1)
during = count - before
stop.set(); thread.join()
print(during)
"""
    assert int(script(code)) > 1000


@pytest.mark.parametrize("first", ["bayesaim", "other"])
@pytest.mark.parametrize("other", ["numpy", "scipy.linalg", "torch"])
def test_beside_other_libraries(script, first, other):
    if importlib.util.find_spec(other.split(".")[0]) is None:
        pytest.skip(f"{other} is not installed")
    threads = "torch.get_num_threads(), " if other == "torch" else ""
    code = f"""
import warnings; warnings.simplefilter("ignore")
import os
{f"import bayesaim, {other}" if first == "bayesaim" else f"import {other}"}
before = ({threads}os.sched_getaffinity(0), os.environ.get("OPENBLAS_CORETYPE"), os.environ.get("OMP_NUM_THREADS"))
import bayesaim, numpy as np
blas = bayesaim.blas_threads()
p, c = bayesaim.Wishart(0.5), bayesaim.Softmax(2)
a = np.random.default_rng(0).standard_normal((200, 200))
expected = a @ a
result = bayesaim.amp(bayesaim.generate(p, c, dim=60, alpha=0.12), p, c, max_iterations=3)
assert np.array_equal(a @ a, expected)
assert np.allclose({"torch.from_numpy(a) @ torch.from_numpy(a)" if other == "torch" else "a @ a"}, expected)
assert bayesaim.blas_threads() == blas
assert before == ({threads}os.sched_getaffinity(0), os.environ.get("OPENBLAS_CORETYPE"), os.environ.get("OMP_NUM_THREADS"))
print(blas, result.error)
"""
    blas, error = script(code, OPENBLAS_NUM_THREADS="2").split()
    assert int(blas) == min(2, os.cpu_count()) and float(error) > 0


def test_kernels_are_those_of_the_program(script, monkeypatch):
    code = "import warnings; warnings.simplefilter('error'); import bayesaim, os; print(bayesaim._core.better_blas_kernels(), 'OPENBLAS_CORETYPE' in os.environ)"
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    assert script(code) == "None False"


def test_pip_installs_it(script, tmp_path):
    if importlib.util.find_spec("pip") is None or importlib.util.find_spec("wheel") is None:
        pytest.skip("needs python3-pip and python3-wheel")
    source = os.environ["BAYESAIM_SOURCE_DIR"]
    without_sanitizer = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}  # cmake does not end with it
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index",
         "--target", str(tmp_path / "site"), source],
        check=True, timeout=200, capture_output=True, env=without_sanitizer,
    )  # fmt: skip
    code = "import bayesaim; print(bayesaim.__file__, bayesaim.theory(bayesaim.Wishart(0.5), bayesaim.Softmax(2), 0.1).estimation_error[0])"
    file, error = script(code, tmp_path, PYTHONPATH=str(tmp_path / "site")).split()
    assert file.startswith(str(tmp_path)) and 0 < float(error) < 1
    assert (tmp_path / "site" / "bayesaim" / "_core.pyi").exists()
    assert (tmp_path / "site" / "bayesaim" / "py.typed").exists()
