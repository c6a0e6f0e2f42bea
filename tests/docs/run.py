# SPDX-License-Identifier: MIT
"""Runs every block of one page, in order, in an empty folder: run.py PAGE FOLDER. blocks.py has the rules.

The environment names the build: BAYESAIM_SOURCE_DIR, BAYESAIM_BUILD_DIR, BAYESAIM_PROGRAM, CXX. Python blocks of a page share one
interpreter, this one. A comment `# 0.3156` or `# name 0.3156` behind a command or an expression is a number that it must give.
"""
import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from blocks import BadPage, read_blocks
from session import commands, difference, has_number, same_number

SOURCE, BUILD = Path(os.environ["BAYESAIM_SOURCE_DIR"]), Path(os.environ["BAYESAIM_BUILD_DIR"])
COMMENT = re.compile(r"\s#\s+(?:[a-z_]+ )?(-?\d+\.\d+)\b")
MARK = "@@ end of command"


class Wrong(Exception):
    pass


def prepare(folder):
    """What a reader has: the checkout with its build, and the program in PATH."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "bin").mkdir(parents=True)
    (folder / "build").mkdir()
    (folder / "build/release").symlink_to(BUILD)
    (folder / "bin/bayesaim").symlink_to(os.environ["BAYESAIM_PROGRAM"])
    for name in ("apps", "examples"):
        (folder / name).symlink_to(SOURCE / name)
    os.environ["PATH"] = f"{folder}/bin:{os.environ['PATH']}"
    # mpirun of a container is often root, with one core
    os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", MPLBACKEND="Agg")
    os.environ.pop("DISPLAY", None)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background of a shell it is ignored, also by children
    os.chdir(folder)


def install_once():
    """What `pkg-config bayesaim` finds."""
    if not Path("prefix").exists():
        subprocess.run(["cmake", "--install", BUILD, "--prefix", "prefix"], check=True, capture_output=True)
        found = next(Path("prefix").rglob("bayesaim.pc")).parent
        os.environ["PKG_CONFIG_PATH"] = str(found.resolve())


def logical_lines(code):
    return code.replace("\\\n", "").strip("\n").split("\n")


def with_options(code, rule):
    """Options of the rule replace those of the commands; one that no command has is appended to all of them."""
    for option in re.findall(r"--\S+(?: (?!--)\S+)?", rule):
        name = option.split()[0]
        given = re.compile(rf"(?<=\s){name}(?: (?!--)[^\s\\]+)?(?=\s)")
        if given.search(code):
            code = given.sub(option, code)
        else:
            code = re.sub(r"(?m)^(.*\bbayesaim [^#\n]*?)(?=\s*(#.*)?$)", rf"\1 {option}", code.replace("\\\n", ""))
    return code


def bash(code, expected_exit=0):
    result = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if result.returncode != expected_exit:
        raise Wrong(f"exit code {result.returncode}, not {expected_exit}:\n{code}\n{result.stdout}")
    return result.stdout


def interrupt(command):
    """A server that says its address, and ends well by Ctrl-C."""
    process = subprocess.Popen(["bash", "-c", "exec " + command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    try:
        process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        raise Wrong(f"does not end by Ctrl-C: {command}") from None
    if process.returncode != 0 or "http://" not in said:
        raise Wrong(f"exit code {process.returncode} after Ctrl-C, first line '{said.strip()}': {command}")


def run_sh(block):
    code, rules = block.code, block.rules
    if "before" in rules:
        bash(rules["before"])
    if "pkg-config" in code:
        install_once()
    if "with" in rules:
        code = with_options(code, rules["with"])
    if "interrupt" in rules:
        for line in logical_lines(code):
            interrupt(line)
        return
    for command, shown in commands(code):
        if shown is not None:
            printed = bash(command, int(rules.get("exit", 0)))
            # Progress of a slow machine is no output; a message that the page shows must be there.
            missing = [line for line in shown.split("\n") if line.startswith("bayesaim: ") and line not in printed.split("\n")]
            wrong = missing[0] if missing else difference(*(re.sub(r"(?m)^bayesaim: .*\n", "", t) for t in (shown, printed)))
            if wrong:
                raise Wrong(f"$ {command}\n{wrong}")
        elif COMMENT.search(code) and "with" not in rules:
            lines = logical_lines(code)
            printed = bash(f"\necho '{MARK}'\n".join(lines)).split(MARK)
            for line, output in zip(lines, printed):
                number = COMMENT.search(line)
                if number and not has_number(number[1], output):
                    raise Wrong(f"{line}\nits output does not have {number[1]}:\n{output}")
        else:
            bash(command, int(rules.get("exit", 0)))


def run_python(block, names, page):
    code = block.code
    for name, value in re.findall(r"(\w+)=(\S+)", block.rules.get("with", "")):
        code, count = re.subn(rf"\b{name}=[^,)]+", f"{name}={value}", code)
        if not count:
            raise Wrong(f"no argument {name} to replace")
    exec(compile(block.rules.get("before", ""), f"{page} (before)", "exec"), names)
    lines = code.split("\n")
    for node in ast.parse(code).body:
        where = ast.increment_lineno(ast.Module([node], []), block.line - 1)
        if not isinstance(node, ast.Expr):
            exec(compile(where, page, "exec"), names)
            continue
        value = eval(compile(ast.Expression(node.value), page, "eval"), names)
        number = COMMENT.search(lines[node.end_lineno - block.line])
        if number and not same_number(number[1], value):
            raise Wrong(f"{ast.unparse(node)} is {value}, not {number[1]}")


def run_cpp(block):
    install_once()
    code = block.code
    if "int main" not in code:
        code = f"#include <bayesaim/bayesaim.hpp>\n{block.rules.get('before', '')}\nvoid fragment() {{\n{code}\n}}\n"
    Path("fragment.cpp").write_text(code)
    bash(f"{os.environ.get('CXX', 'g++')} -std=c++20 -fsyntax-only fragment.cpp $(pkg-config --cflags bayesaim)")


def run_toml(block):
    Path("block.toml").write_text(block.code)
    bash("bayesaim sweep block.toml --dry-run")


def run_block(block, names, page):
    if "skip" in block.rules:
        if block.language == "sh":
            bash(f"bash -n <<'END_OF_BLOCK'\n{block.code}END_OF_BLOCK")
        elif block.language == "python":
            ast.parse(block.code)
    elif "file" in block.rules:
        Path(block.rules["file"]).write_text(block.code)
    elif block.language == "sh":
        run_sh(block)
    elif block.language == "python":
        run_python(block, names, page)
    elif block.language == "cpp":
        run_cpp(block)
    elif block.language == "toml":
        run_toml(block)


def cpu_seconds():
    return sum(os.times()[:4])


def main(page, folder):
    prepare(folder)
    names, failures = {"__name__": "__main__"}, 0
    blocks = read_blocks((SOURCE / page).read_text())
    for block in blocks:
        start, busy = time.perf_counter(), cpu_seconds()
        try:
            run_block(block, names, page)
            outcome = "skipped: " + block.rules["skip"] if "skip" in block.rules else "ok"
        except Exception as error:  # of a block of the page: any kind
            failures += 1
            outcome = f"WRONG\n{error if isinstance(error, Wrong) else repr(error)}"
        print(f"{page}:{block.line} {block.language} {time.perf_counter() - start:.1f} s, cpu {cpu_seconds() - busy:.1f} s, {outcome}", flush=True)
    print(f"{len(blocks)} blocks, {failures} wrong, cpu {cpu_seconds():.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], Path(sys.argv[2]).resolve()))
    except BadPage as error:
        sys.exit(f"{sys.argv[1]}: {error}")
