# SPDX-License-Identifier: MIT
"""Two processes in one place; file systems without locks."""

import errno
import os
import time

from bench import names
from works import AMP, FIGURE, GENERATE, GD, SWEEP, WRITING


def two_at_once(bench, work, delay):
    """Both end well, or one is refused with a line; the result is that of one."""
    new, files = work.undisturbed(bench, bench.place())
    folder = bench.place()
    work.prepare(bench, folder)
    bench.case(f"two of {work.name}, {delay:.2f} s apart")
    first = bench.start(work.command(folder))
    time.sleep(delay)
    second = bench.start(work.command(folder))
    ends = [(process.communicate()[1], process.returncode) for process in (first, second)]
    for err, code in ends:
        refused = code == 1 and err.count("\n") == 1 and ("is in use by another process" in err or
                                                          "which exists" in err)
        bench.check(code == 0 or refused, f"exit code {code}: {err!r}")
    bench.check(any(code == 0 for _, code in ends), "both were refused")
    bench.check(work.result(folder) == new, "the result differs from that of one process")
    bench.check(names(folder) == files, f"files {names(folder)} instead of {files}")


def merge_during_a_sweep(bench):
    new, _ = SWEEP.undisturbed(bench, bench.place())
    folder = bench.place()
    SWEEP.prepare(bench, folder)
    process = bench.start(SWEEP.command(folder))
    while not (folder / "run" / "provenance.json").exists() and process.poll() is None:
        time.sleep(0.001)
    merges = 0
    while process.poll() is None:
        merge = bench.run(["merge", folder / "run", "--output", folder / "merged", "--quiet"])
        bench.case(f"merge {merges} while a sweep writes")
        bench.check(merge.code in (0, 2), f"exit code {merge.code}: {merge.err!r}")
        merges += 1
    process.communicate()
    bench.case("merge after the sweep")
    bench.check_good(bench.run(["merge", folder / "run", "--output", folder / "merged", "--quiet"]))
    bench.check(process.returncode == 0 and SWEEP.result(folder) == new, "the sweep was disturbed")
    for name in ("results.csv", "summary.csv"):
        bench.check((folder / "merged" / name).read_bytes() == (folder / "run" / name).read_bytes(),
                    f"{name} of merge differs")


def locks(bench):
    """Without locks a store refuses, and everything else works."""
    for error in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)[:1 if bench.quick else 3]:
        for work in bench.some(WRITING):
            new, files = work.undisturbed(bench, bench.place())
            folder = bench.place()
            work.prepare(bench, folder)
            before = names(folder)
            environment = {"LD_PRELOAD": str(bench.faults), "FAULTS_LOCKS": str(error)}
            bench.case(f"{work.name}, {errno.errorcode[error]}")
            run = bench.run(work.command(folder), environment=environment)
            if work.grows or work.name == "figure":
                bench.check_one_line(run, "could not lock '", "runs.store'", os.strerror(error), "with locks")
                for name in before:
                    bench.check((folder / name).exists(), f"{name} is gone")
            elif bench.check_good(run):
                bench.check(work.result(folder) == new, "the result differs")
            if not bench.check_good(bench.run(work.command(folder, again=True))):
                continue
            bench.check(work.result(folder) == new, "the next run has another result")
            bench.check(names(folder) == files, f"files {names(folder)} instead of {files}")


def run(bench):
    with bench.scenario("two processes in one place"):
        for work in bench.some((SWEEP, AMP, GD, GENERATE, FIGURE)):
            for _ in range(1 if bench.quick else 6):
                two_at_once(bench, work, bench.random.uniform(0, 0.3))
        merge_during_a_sweep(bench)
    with bench.scenario("file system without locks"):
        locks(bench)
