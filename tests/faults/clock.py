# SPDX-License-Identifier: MIT
"""A clock that jumps while the program runs. Durations come from a clock that does not."""

import glob
import time
import urllib.error
import urllib.request

from bench import names
from works import AMP, GENERATE, SWEEP

JUMPS = {"an hour back": "-3600", "a year forward": "+31536000", "to 1970": "-1700000000"}


def run(bench):
    library = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), None)
    with bench.scenario("clock that jumps"):
        if library is None:
            return bench.skip("not tested: faketime is not installed")
        for work in (SWEEP, AMP, GENERATE):
            new, files = work.undisturbed(bench, bench.place())
            for what, jump in JUMPS.items():
                folder, clock = bench.place(), bench.place("clock") / "now"
                work.prepare(bench, folder)
                command = [word for word in work.command(folder) if word != "--quiet"]
                process = jumping(bench, library, clock, command)
                time.sleep(0.2)
                clock.write_text(jump + "\n")
                _, err = process.communicate()
                bench.case(f"{work.name}, {what}")
                bench.check(process.returncode == 0, f"exit code {process.returncode}: {err!r}")
                bench.check(" left" not in err or "-" not in err, f"a negative time: {err!r}")
                bench.check(work.result(folder) == new, "the result differs")
                bench.check(names(folder) == files, f"files {names(folder)} instead of {files}")
        for what, jump in JUMPS.items():
            time_limit(bench, library, what, jump)


def jumping(bench, library, clock, command, **options):
    clock.write_text("+0\n")
    return bench.start(command, environment={"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": str(clock),
                                             "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1",
                                             "DONT_FAKE_MONOTONIC": "1"}, **options)


def time_limit(bench, library, what, jump):
    """The explorer ends a long computation at its limit, and answers a short one, whatever the clock says."""
    clock = bench.place("clock") / "now"
    process = jumping(bench, library, clock, ["explore", "--no-browser", "--time-limit", "3"])
    address = process.stdout.readline().strip()
    bench.case(f"explorer, {what}")
    try:
        clock.write_text(jump + "\n")
        short = ask(address, "run/theory", "width=0.5&alpha=0.1")
        bench.check("estimation_error" in short, f"no answer after the jump: {short[:300]!r}")
        start = time.monotonic()
        endless = ask(address, "stream/amp", "width=0.5&alpha=0.12&dim=250&iterations=1000&tolerance=1e-300")
        bench.check("limit" in endless or time.monotonic() - start > 2, f"no time limit: {endless[-300:]!r}")
    finally:
        process.terminate()
        _, err = process.communicate(timeout=60)
    bench.check(process.returncode == 0, f"exit code {process.returncode}: {err!r}")


def ask(address, path, options):
    head, token = address.split("/?token=")
    try:
        with urllib.request.urlopen(f"{head}/{path}?token={token}&{options}", timeout=120) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode()
