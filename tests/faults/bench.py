# SPDX-License-Identifier: MIT
"""What all faults share: the program, places to work in, and the list of what went wrong."""

import contextlib
import csv
import ctypes
import io
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent


class Ended:
    """A process that has ended."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def lines(self):
        return self.err.splitlines()


class Bench:
    def __init__(self, program, kills, quick):
        self.kills, self.quick = kills, quick
        self.random = random.Random(1)
        self.rows = []  # scenario, cases, failures, remark
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="bayesaim_faults_"))
        self.folder.chmod(0o755)  # other users work here too
        self.program = self.folder / "bayesaim"
        shutil.copy(program, self.program)
        self.faults = self.folder / "faults.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", self.faults, HERE / "faults.c", "-ldl"], check=True)
        self.environment = dict(os.environ)
        self.failures = []
        self._cases = 0

    def close(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    # ---- scenarios and cases ---------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def scenario(self, name):
        """Counts the cases of a scenario, and prints its line at the end."""
        self._cases, before, start = 0, len(self.failures), time.monotonic()
        self.remark = ""
        yield
        failed = len(self.failures) - before
        self.rows.append((name, self._cases, failed, self.remark))
        print(f"{name}: {self._cases} cases, {failed} failed, {time.monotonic() - start:.0f} s"
              f"{'; ' + self.remark if self.remark else ''}", flush=True)

    def case(self, name):
        self._cases += 1
        self._name = name

    def check(self, good, what):
        if not good:
            self.failures.append(f"{self._name}: {what}")
            print(f"  FAILED {self._name}: {what}", flush=True)
        return good

    def skip(self, why):
        self.remark = why

    def some(self, works):
        """All of them; of the quick test a few."""
        return [work for work in works if not self.quick or work.name in ("generate", "amp", "theory", "sweep")]

    # ---- the program -----------------------------------------------------------------------------------------------

    def place(self, name="place"):
        """A new, empty directory."""
        return pathlib.Path(tempfile.mkdtemp(prefix=name + "_", dir=self.folder))

    def start(self, arguments, before=(), environment=None, **options):
        options.setdefault("stdin", subprocess.DEVNULL)
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen([*map(str, before), str(self.program), *map(str, arguments)], text=True,
                                env={**self.environment, **(environment or {})}, **options)

    def run(self, arguments, before=(), environment=None, timeout=100, **options):
        process = self.start(arguments, before, environment, **options)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            err = (err or "") + "\nit hangs"
        return Ended(process.returncode, out or "", err or "")

    def with_faults(self, folder, from_call, error, **others):
        """Environment in which calls on files of the folder fail, see faults.c."""
        return {"LD_PRELOAD": str(self.faults), "FAULTS_BELOW": f"{folder}/", "FAULTS_FROM": str(from_call),
                "FAULTS_ERRNO": str(error), **others}

    def check_one_line(self, run, *parts):
        """One line that has these parts, and exit code 1."""
        good = run.code == 1 and len(run.lines) == 1 and run.lines[0].startswith("bayesaim: ")
        good = good and all(str(part) in run.err for part in parts)
        return self.check(good, f"exit code 1 and one line with {[str(part) for part in parts]} expected, got "
                                f"{run.code} and {run.err[:600]!r}")

    def check_good(self, run):
        return self.check(run.code == 0, f"exit code {run.code}: {run.err[:600]!r}")


# ---- files -------------------------------------------------------------------------------------------------------------


def names(folder):
    """All files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*") if path.is_file())


def without_seconds(text):
    """A CSV table without the columns that hold times."""
    rows = list(csv.reader(io.StringIO(text)))
    keep = [i for i, name in enumerate(rows[0]) if "seconds" not in name] if rows else []
    return [[row[i] for i in keep if i < len(row)] for row in rows]


def _without_times(value):
    if isinstance(value, dict):
        return {key: _without_times(item) for key, item in value.items() if "seconds" not in key}
    return [_without_times(item) for item in value] if isinstance(value, list) else value


def content(path):
    """The bytes of a file; where it holds times, all but these."""
    data = pathlib.Path(path).read_bytes()
    if path.name.endswith(".json"):
        return _without_times(json.loads(data))
    if path.name.endswith(".csv"):
        return without_seconds(data.decode())
    if path.name.endswith(".pdf"):
        return re.sub(rb"/CreationDate \(.*?\)", b"", data)
    return data


def as_ordinary_user():
    """Words before a command that run it as an ordinary user."""
    return ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"] if os.geteuid() == 0 else []


def own_mounts():
    """From here on mounts of this process are its own. Returns whether it may mount."""
    new_namespace, private, recursive = 0x00020000, 1 << 18, 1 << 14
    libc = ctypes.CDLL(None, use_errno=True)
    return libc.unshare(new_namespace) == 0 and libc.mount(b"none", b"/", None, private | recursive, None) == 0
