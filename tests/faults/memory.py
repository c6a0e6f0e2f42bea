# SPDX-License-Identifier: MIT
"""Too little memory: a limit on the address space, from what the program needs to start to what it needs to end."""

import os
import pathlib
import subprocess

from bench import HERE, names

LARGE = {
    "amp": ["amp", "--alpha", "0.3", "--dim", "150", "--iterations", "2", "--width", "0.5", "--output", "{}/amp.csv",
            "--checkpoint", "{}/run.h5", "--checkpoint-every", "1"],
    "gd": ["gd", "--alpha", "0.3", "--dim", "150", "--steps", "2", "--width", "0.5", "--no-amp", "--output",
           "{}/gd.csv"],
    "generate": ["generate", "--alpha", "0.3", "--dim", "150", "--width", "0.5", "--output", "{}/data.h5"],
    "denoise": ["denoise", "--dim", "500", "--noise-variance", "0.5", "--output", "{}/denoise.csv"],
    "theory": ["theory", "--alpha", "0:0.3:30001", "--estimation-only", "--output", "{}/theory.csv"],
    "too large": ["amp", "--alpha", "1", "--dim", "100000", "--width", "0.5", "--output", "{}/amp.csv"],
}


def least_megabytes(bench):
    """What the program needs to start: below this its libraries complain before it begins."""
    for megabytes in range(50, 2000, 10):
        run = bench.run(["theory", "--alpha", "0.1"], before=limit(megabytes))
        if run.code == 0 and run.err == "":
            return megabytes + 20
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
        module = pathlib.Path(os.environ.get("PYTHONPATH") or HERE.parent.parent / "build" / "release" / "python")
        if not list(module.glob("bayesaim/_core*.so")):
            return bench.skip("not tested: no module in PYTHONPATH or build/release/python")
        script = ("import bayesaim\ntry:\n    bayesaim.generate(bayesaim.Wishart(0.5), bayesaim.Softmax(2), dim=100000, "
                  "alpha=1)\nexcept MemoryError:\n    print('MemoryError')\n")
        bench.case("too large")
        run = subprocess.run([*limit(4096), "/usr/bin/python3", "-c", script], capture_output=True, text=True,
                             env={**os.environ, "PYTHONPATH": str(module)})
        bench.check(run.stdout == "MemoryError\n", f"{run.returncode}: {run.stdout!r} {run.stderr[-300:]!r}")
