# SPDX-License-Identifier: MIT
"""Too little memory: a limit on the address space, from what the program needs to start to what it needs to end."""

import os
import pathlib
import subprocess
import sys

from bench import names

LARGE = {
    "amp": ["amp", "--alpha", "0.3", "--dim", "150", "--iterations", "2", "--width", "0.5", "--output", "{}/amp.csv",
            "--checkpoint", "{}/run.h5", "--checkpoint-every", "1"],
    "gd": ["gd", "--alpha", "0.3", "--dim", "150", "--steps", "2", "--width", "0.5", "--no-amp", "--output",
           "{}/gd.csv"],
    "generate": ["generate", "--alpha", "0.3", "--dim", "150", "--width", "0.5", "--output", "{}/data.h5"],
    "denoise": ["denoise", "--dim", "500", "--noise-variance", "0.5", "--output", "{}/denoise.csv"],
    "theory": ["theory", "--alpha", "0:0.3:100001", "--estimation-only", "--output", "{}/theory.csv"],
    "phase": ["phase", "--alpha", "0.1:0.2:100", "--width", "0.5:1:100", "--output", "{}/phase.csv"],
    "too large": ["amp", "--alpha", "1", "--dim", "100000", "--width", "0.5", "--output", "{}/amp.csv"],
}


def least_megabytes(bench):
    """What the program needs to start."""
    for megabytes in range(50, 2000, 10):
        if bench.run(["theory", "--alpha", "0.1"], before=limit(megabytes)).code == 0:
            return megabytes
    raise RuntimeError("the program does not start below 2 GB")


def limit(megabytes):
    return ["prlimit", f"--as={megabytes * 2**20}"]


def run(bench):
    least = least_megabytes(bench)
    for name, words in list(LARGE.items())[:1 if bench.quick else None]:
        with bench.scenario(f"limit of the memory: {name}"):
            megabytes, failed = least, 0
            while megabytes < 4096:
                folder = bench.place()
                command = [word.replace("{}", str(folder)) for word in words] + ["--quiet", "--threads", "2"]
                run = bench.run(command, before=limit(megabytes))
                if run.code == 0:
                    break
                bench.case(f"{name}, {megabytes} MB")
                bench.check_one_line(run, "not enough memory")
                bench.check(all(name.endswith(".h5") and "part" not in name for name in names(folder)),
                            f"left: {names(folder)}")
                failed += 1
                megabytes += max(4, megabytes // (4 if bench.quick else 20))
            bench.check(failed > 0, "it never was too large")
            bench.remark = f"{least} to {megabytes} MB"
    if not bench.quick:
        python_module(bench)


def python_module(bench):
    with bench.scenario("limit of the memory: Python"):
        module = next((path for path in os.environ.get("PYTHONPATH", "").split(":")
                       if list(pathlib.Path(path or "/nowhere").glob("bayesaim/_*.so"))), None)
        if module is None:
            return bench.skip("not tested: no module in PYTHONPATH")
        script = ("import bayesaim\ntry:\n    bayesaim.make_synthetic(bayesaim.Wishart(0.5), "
                  "bayesaim.make_channel('softmax'), dim=100000, alpha=1)\nexcept MemoryError as error:\n"
                  "    print('MemoryError')\n")
        bench.case("too large")
        run = subprocess.run([*limit(4096), sys.executable, "-c", script], capture_output=True, text=True)
        bench.check(run.stdout == "MemoryError\n", f"{run.returncode}: {run.stdout!r} {run.stderr[-300:]!r}")
