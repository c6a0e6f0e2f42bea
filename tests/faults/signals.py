# SPDX-License-Identifier: MIT
"""Signals that end a program politely, and standard streams that are closed."""

import signal
import subprocess
import time

from bench import names
from kills import finish
from works import KILLED, WRITING

CODES = {0: "stdin", 1: "stdout", 2: "stderr"}


def polite_end(bench, work, number):
    """Exit code 130 and a line; the next run goes on. Before its first work a process may end at once."""
    new, files = work.undisturbed(bench, bench.place())
    start = time.monotonic()
    work.undisturbed(bench, bench.place())
    duration = time.monotonic() - start
    for i in range(1 if bench.quick else 10):
        folder = bench.place()
        work.prepare(bench, folder)
        process = bench.start([word for word in work.command(folder) if word != "--quiet"])
        try:
            process.wait(bench.random.uniform(0, duration))
        except subprocess.TimeoutExpired:
            process.send_signal(number)
        _, err = process.communicate()
        bench.case(f"{work.name}, {number.name}, {i}")
        stopped = process.returncode == 130 and "bayesaim: interrupted; " in err
        bench.check(stopped or process.returncode in (0, -number), f"exit code {process.returncode}: {err!r}")
        if stopped:
            bench.check(not any(name.endswith(".part") for name in names(folder)), f"left: {names(folder)}")
        finish(bench, work, folder, new, files)


def closed_stream(bench, work, stream):
    """A file must not take the number of a closed stream, or messages would be written into it."""
    new, files = work.undisturbed(bench, bench.place())
    folder = bench.place()
    work.prepare(bench, folder)
    words = [str(bench.program), *(word for word in work.command(folder) if word != "--quiet")]
    redirection = {0: "<&-", 1: ">&-", 2: "2>&-"}[stream]
    run = subprocess.run(["sh", "-c", f'"$@" {redirection}', "sh", *words], capture_output=True, text=True,
                         env=bench.environment)
    bench.case(f"{work.name}, {CODES[stream]} closed")
    prints = stream == 1 and "could not write to standard output: Bad file descriptor" in run.stderr
    bench.check(run.returncode == (1 if prints else 0), f"exit code {run.returncode}: {run.stderr!r}")
    bench.check(work.result(folder) == new, "the result differs")
    finish(bench, work, folder, new, files)


def reader_that_leaves(bench):
    for words in (["theory", "--alpha", "0:0.2:2000", "--estimation-only"], ["figure", "list"], ["--help"]):
        bench.case(f"{words[0]} into head -1")
        with bench.start(words) as process:
            line = process.stdout.readline()
            process.stdout.close()
            err = process.stderr.read()
        bench.check(process.wait() in (0, -signal.SIGPIPE) and line and not err,
                    f"exit code {process.returncode}: {err!r}")


def nohup(bench):
    work = KILLED[1]
    folder = bench.place()
    process = bench.start(work.command(folder), before=["nohup"])
    time.sleep(0.2)
    process.send_signal(signal.SIGHUP)
    _, err = process.communicate()
    bench.case("amp under nohup, SIGHUP")
    bench.check(process.returncode == 0, f"exit code {process.returncode}: {err!r}")


def run(bench):
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)[:1 if bench.quick else 3]:
        with bench.scenario(f"{number.name}"):
            for work in bench.some(KILLED):
                polite_end(bench, work, number)
            if number == signal.SIGHUP:
                nohup(bench)
    with bench.scenario("standard stream closed, reader that leaves"):
        for work in bench.some(WRITING):
            for stream in CODES:
                closed_stream(bench, work, stream)
        reader_that_leaves(bench)
