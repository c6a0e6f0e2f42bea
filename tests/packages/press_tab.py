# SPDX-License-Identifier: MIT
"""press_tab.py SHELL PREFIX..: a person at a terminal who types half words and presses Tab.

`PREFIX.. SHELL` starts the interactive shell, here in the clean Debian root. What Tab makes of the line is then run: its output shows
that command, option and value were completed.
"""
import os
import pty
import re
import select
import sys
import time

STARTS = {
    "bash": (["bash", "--noprofile", "--norc", "-i"], ". /usr/share/bash-completion/bash_completion"),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -u -D"),
}
SECONDS = 60  # a bound for a machine that is busy; the loop ends when the text is there


def main():
    shell, prefix = sys.argv[1], sys.argv[2:]
    command, load = STARTS[shell]
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="dumb", PS1="", HOME="/root", LC_ALL="C.UTF-8", PATH="/usr/bin:/bin:/usr/sbin:/sbin")
        os.execvp((prefix + command)[0], prefix + command)
    seen = ""

    def read_until(pattern):
        nonlocal seen
        end = time.monotonic() + SECONDS
        while not re.search(pattern, seen):
            if time.monotonic() > end:
                sys.exit(f"press_tab: {shell}: no {pattern!r} in {seen!r}")
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    seen += os.read(terminal, 4096).decode(errors="replace")
                except OSError:  # the shell has ended
                    sys.exit(f"press_tab: {shell}: ended after {seen!r}")

    def type_(text):
        nonlocal seen
        seen = ""
        os.write(terminal, text.encode())

    # 6*7: the echo of what was typed must not look like the answer.
    type_(f"{load}; echo ready $((6*7))\r")
    read_until("ready 42")
    type_("bayesaim thr\t")
    read_until("threshold ")
    type_("--width 0.5 --form\t")
    read_until("--format")
    type_("cs\t")
    read_until("csv")
    type_("\r")
    read_until(r"strong_recovery[^\n]*\n[^\n]*0\.1875")
    type_("exit\r")
    os.waitpid(child, 0)


main()
