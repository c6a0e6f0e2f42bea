# SPDX-License-Identifier: MIT
"""SIGKILL: at random moments, and before each call that changes a file."""

import signal
import subprocess
import time

from bench import content, names
from works import KILLED, WRITING


def check_whole(bench, work, folder, old, new):
    """A file at its final name is the old one or the new one, never a part of it."""
    for name in work.files:
        file = folder / name
        if name == work.checkpoint or not file.exists():
            continue  # the checkpoint is read by the next run
        now = content(file)
        if work.grows and name.endswith("results.csv"):
            bench.check(all(row in new[name] for row in now), f"{name} has other rows than at the end")
        elif not work.grows:
            bench.check(now in (old.get(name), new[name]), f"{name} is neither the old nor the whole file")


def kill_at_random_moments(bench, work):
    with bench.scenario(f"SIGKILL, random moments: {work.name}"):
        new, files = work.undisturbed(bench, bench.place())
        old = {}
        if work.other and not work.checkpoint and not work.grows:
            folder = bench.place()
            old, _ = work.undisturbed(bench, folder, work.other)
            old_files = {name: (folder / name).read_bytes() for name in work.files}
        start = time.monotonic()
        work.undisturbed(bench, bench.place())
        duration = time.monotonic() - start
        killed, chains, most_left = 0, 0, 0
        while killed < bench.kills:
            folder = bench.place()
            work.prepare(bench, folder)
            if old and chains % 2 == 1:
                for name, data in old_files.items():
                    (folder / name).write_bytes(data)
            chains += 1
            for link in range(bench.random.randint(1, 4)):
                process = bench.start(work.command(folder, again=True), stdout=subprocess.DEVNULL)
                try:
                    process.wait(bench.random.uniform(0, duration))
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                _, err = process.communicate()
                bench.case(f"{work.name}, kill {killed + 1}, chain {chains}, link {link + 1}")
                if process.returncode != -signal.SIGKILL:
                    bench.check(process.returncode == 0, f"exit code {process.returncode}: {err!r}")
                    break
                killed += 1
                check_whole(bench, work, folder, old if chains % 2 == 0 else {}, new)
                most_left = max(most_left, sum(name.endswith(".part") for name in names(folder)))
                bench.check(most_left <= 2, f"temporary files pile up: {names(folder)}")
            finish(bench, work, folder, new, files)
        bench.remark = f"{killed} kills in {chains} chains, run of {duration:.1f} s"


def finish(bench, work, folder, new, files):
    """The next run ends as if nothing had happened."""
    run = bench.run(work.command(folder, again=True))
    if bench.check_good(run):
        bench.check(work.result(folder) == new, "the result differs from that of an undisturbed run")
        bench.check(names(folder) == files, f"files {names(folder)} instead of {files}")


def kill_before_each_call(bench, work):
    with bench.scenario(f"SIGKILL, each call: {work.name}"):
        new, files = work.undisturbed(bench, bench.place())
        call = 1
        while True:
            folder = bench.place()
            work.prepare(bench, folder)
            run = bench.run(work.command(folder), environment=bench.with_faults(folder, call, 0))
            if run.code == 0:
                break
            bench.case(f"{work.name}, killed before call {call}")
            bench.check(run.code == -signal.SIGKILL, f"exit code {run.code}: {run.err!r}")
            check_whole(bench, work, folder, {}, new)
            finish(bench, work, folder, new, files)
            call += 7 if bench.quick else 1


def run(bench):
    for work in bench.some(KILLED):
        kill_at_random_moments(bench, work)
    for work in bench.some(WRITING):
        kill_before_each_call(bench, work)
