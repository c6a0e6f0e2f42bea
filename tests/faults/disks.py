# SPDX-License-Identifier: MIT
"""Disks: full, read-only, forbidden; names that cannot be written."""

import errno
import os
import stat
import subprocess
import time

from bench import content, as_ordinary_user, names
from works import AMP, GENERATE, WRITING


def check_refusal(bench, run, folder, error):
    """One line with the name of a file or folder of the place, and the reason."""
    bench.check_one_line(run, "could not ", f"'{folder}/", os.strerror(error))


def fail_each_call(bench, work, error):
    """From its n-th call on files, for every n, the disk is full (or read-only, or broken)."""
    with bench.scenario(f"{os.strerror(error)}, each call: {work.name}"):
        new, files = work.undisturbed(bench, bench.place())
        old_folder = bench.place()
        work.undisturbed(bench, old_folder, work.other)
        old = {} if work.checkpoint or work.grows or work.name == "figure" else {
            name: (old_folder / name).read_bytes() for name in work.files}
        call = 1
        while True:
            folder = bench.place()
            work.prepare(bench, folder)
            for name, data in old.items():
                (folder / name).write_bytes(data)
            run = bench.run(work.command(folder), environment=bench.with_faults(folder, call, error))
            if run.code == 0 and work.result(folder) == new:
                break  # it makes fewer calls
            bench.case(f"{work.name}, {errno.errorcode[error]} from call {call} on")
            check_refusal(bench, run, folder, error)
            for name in old:
                now = (folder / name).read_bytes()
                bench.check(now == old[name] or content(folder / name) == new[name],
                            f"{name} is neither the old nor the whole file")
            if error == errno.ENOSPC:
                bench.check(not any(name.endswith(".part") for name in names(folder)),
                            f"temporary files are left: {names(folder)}")
            again = bench.run(work.command(folder, again=True))
            if bench.check_good(again):
                bench.check(work.result(folder) == new, "the next run has another result")
                bench.check(names(folder) == files, f"files {names(folder)} instead of {files}")
            call += 7 if bench.quick else 1


class Disk:
    """A small file system in memory."""

    def __init__(self, bench, kilobytes):
        self.folder = bench.place("disk")
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k,mode=755", "none", self.folder], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.folder], check=True)

    def leave(self, kilobytes):
        """Fills the disk but for so much."""
        state = os.statvfs(self.folder)
        with open(self.folder / "ballast", "wb") as ballast:
            ballast.write(bytes(max(state.f_bavail * state.f_frsize - kilobytes * 1024, 0)))

    def read_only(self):
        """Only possible while no file is being written. Returns whether it was."""
        return subprocess.run(["mount", "-o", "remount,ro", self.folder], capture_output=True).returncode == 0

    def writable(self):
        subprocess.run(["mount", "-o", "remount,rw", self.folder], check=True)


def fill_a_real_disk(bench):
    with bench.scenario("No space left, small disk"):
        for work in bench.some(WRITING):
            new, files = work.undisturbed(bench, bench.place())
            for free in (0, 4) if bench.quick else (0, 4, 8, 16, 32, 64):
                with Disk(bench, 8192) as disk:
                    work.prepare(bench, disk.folder)
                    disk.leave(free)
                    run = bench.run(work.command(disk.folder))
                    if run.code == 0:
                        break  # it needs no more than this
                    bench.case(f"{work.name}, {free} KB free")
                    check_refusal(bench, run, disk.folder, errno.ENOSPC)
                    (disk.folder / "ballast").unlink()
                    if bench.check_good(bench.run(work.command(disk.folder, again=True))):
                        bench.check(work.result(disk.folder) == new, "the next run has another result")
                        bench.check(names(disk.folder) == files, f"files {names(disk.folder)} instead of {files}")


def read_only_disk(bench):
    with bench.scenario("read-only disk, from the start"):
        for work in bench.some(WRITING):
            with Disk(bench, 8192) as disk:
                work.prepare(bench, disk.folder)
                disk.read_only()
                bench.case(work.name)
                check_refusal(bench, bench.run(work.command(disk.folder)), disk.folder, errno.EROFS)
    with bench.scenario("disk that becomes read-only"):
        for work in (AMP, GENERATE):
            new, files = work.undisturbed(bench, bench.place())
            for i in range(2 if bench.quick else 10):
                with Disk(bench, 65536) as disk:
                    work.prepare(bench, disk.folder)
                    process = bench.start(work.command(disk.folder))
                    time.sleep(0.1 + 0.03 * i)
                    while process.poll() is None and not disk.read_only():
                        time.sleep(0.001)
                    run = process.communicate()
                    bench.case(f"{work.name}, {i}")
                    if process.returncode != 0:
                        bench.check(process.returncode == 1 and os.strerror(errno.EROFS) in run[1]
                                    and run[1].count("\n") == 1, f"{process.returncode}: {run[1]!r}")
                    disk.writable()
                    if bench.check_good(bench.run(work.command(disk.folder, again=True))):
                        bench.check(work.result(disk.folder) == new, "the next run has another result")
                        bench.check(names(disk.folder) == files, f"files {names(disk.folder)} instead of {files}")


def put_in_the_way(bench, work, name):
    """A missing directory, a directory, and a full device where a file should be."""
    folder = bench.place()
    work.prepare(bench, folder)
    command = work.command(folder)
    missing = [word.replace(f"{folder}/{name}", f"{folder}/missing/{name}") for word in command]
    bench.case(f"{work.name}, {name} in a missing directory")
    bench.check_one_line(bench.run(missing), f"could not write '{folder}/missing/{name}': No such file")
    bench.case(f"{work.name}, {name} is a directory")
    (folder / name).mkdir()
    bench.check_one_line(bench.run(command), f"'{folder}/{name}'")
    bench.check(not list((folder / name).iterdir()), "something is in it")
    (folder / name).rmdir()
    try:
        os.mknod(folder / name, 0o666 | stat.S_IFCHR, os.makedev(1, 7))
    except PermissionError:
        return bench.skip("no devices: not the superuser")
    bench.case(f"{work.name}, {name} is a full device")
    bench.check_one_line(bench.run(command), f"'{folder}/{name}'")
    bench.check((folder / name).is_char_device(), "the device was replaced by a file")
    bench.check(not any(left.endswith(".part") for left in names(folder)), f"left: {names(folder)}")


def names_that_cannot_be_written(bench):
    with bench.scenario("forbidden directory"):
        for work in bench.some(WRITING):
            folder = bench.place()
            work.prepare(bench, folder)
            subprocess.run(["chmod", "-R", "a+rX,a-w", folder], check=True)
            bench.case(work.name)
            run = bench.run(work.command(folder), before=as_ordinary_user())
            check_refusal(bench, run, folder, errno.EACCES)
    with bench.scenario("missing directory, directory or device as file"):
        for work in bench.some(WRITING):
            if work.grows or work.name == "figure":
                continue  # these make their directory
            for name in work.files:
                put_in_the_way(bench, work, name)
    with bench.scenario("standard output or error on a full device"):
        for work in bench.some(WRITING):
            for stream in ("stdout", "stderr"):
                folder = bench.place()
                work.prepare(bench, folder)
                command = [word for word in work.command(folder) if stream == "stdout" or word != "--quiet"]
                with open("/dev/full", "w") as full:
                    run = bench.run(command, **{stream: full})
                bench.case(f"{work.name}, {stream} is full")
                if stream == "stderr" or not run.lines:  # with --output it prints nothing
                    bench.check_good(run)
                else:
                    bench.check_one_line(run, "could not write to standard output: No space left on device")


def run(bench, can_mount):
    for work in bench.some(WRITING):
        fail_each_call(bench, work, errno.ENOSPC)
        if not bench.quick:
            fail_each_call(bench, work, errno.EROFS)
            fail_each_call(bench, work, errno.EIO)
    names_that_cannot_be_written(bench)
    if bench.quick:
        return
    if can_mount:
        fill_a_real_disk(bench)
        read_only_disk(bench)
    else:
        with bench.scenario("small and read-only disks"):
            bench.skip("not tested: mounting is not allowed")
