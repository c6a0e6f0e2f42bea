# SPDX-License-Identifier: MIT
"""The explorer as a user runs it: the program, and a real browser."""
import errno
import json
import os
import shlex
import signal
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest

PROGRAM = os.environ["BAYESAIM_PROGRAM"]
LONG = float(os.environ.get("BAYESAIM_PATIENCE", 120))  # seconds after which something has failed, on a loaded machine too


def bayesaim(*arguments: str) -> str:
    """What the program prints."""
    return subprocess.run([PROGRAM, *arguments, "--quiet"], check=True, capture_output=True, text=True).stdout


def bayesaim_json(command: str) -> dict:
    """The result of a command as a user copies it: bayesaim theory --width 0.5 .."""
    words = shlex.split(command)
    assert words[0] == "bayesaim"
    return json.loads(bayesaim(*words[1:], "--format", "json"))


class Explorer:
    """bayesaim explore, until the end of the test."""

    def __init__(self, *arguments: str, environment: dict | None = None):
        self.process = subprocess.Popen(
            [PROGRAM, "explore", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.address = self.process.stdout.readline().strip()
        assert self.address, self.process.stderr.read()
        parts = urllib.parse.urlsplit(self.address)
        self.host, self.port = parts.hostname, parts.port
        self.token = urllib.parse.parse_qs(parts.query)["token"][0]

    def url(self, path: str, **options: str) -> str:
        query = urllib.parse.urlencode({"token": self.token, **{name.replace("_", "-"): value for name, value in options.items()}})
        return f"http://{self.host}:{self.port}{path}?{query}"

    def get(self, path: str, headers: dict | None = None, **options: str) -> tuple[int, str]:
        """Status and text of an answer."""
        request = urllib.request.Request(self.url(path, **options), headers=headers or {})
        try:
            with urllib.request.urlopen(request, timeout=LONG) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def connect(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout=LONG)

    def raw(self, request: bytes, whole: bool = True) -> bytes:
        """What the server answers to these bytes; if they are no whole request, they end with the connection."""
        with self.connect() as connection:
            try:
                connection.sendall(request)
                if not whole:
                    connection.shutdown(socket.SHUT_WR)
                answer = b""
                while piece := connection.recv(1 << 16):
                    answer += piece
            except OSError as error:  # it need not listen to the end
                if not isinstance(error, ConnectionError) and error.errno != errno.ENOTCONN:
                    raise
                return b""
            return answer

    def memory(self) -> int:
        """Resident bytes."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def end(self) -> tuple[int, str]:
        """Ctrl-C; exit code and standard error."""
        self.process.send_signal(signal.SIGINT)
        _, error = self.process.communicate(timeout=LONG)
        return self.process.returncode, error


@pytest.fixture
def start():
    """Starts explorers that end with the test."""
    started = []

    def make(*arguments: str, environment: dict | None = None) -> Explorer:
        started.append(Explorer("--no-browser", *arguments, environment=environment))
        return started[-1]

    yield make
    for explorer in started:
        if explorer.process.poll() is None:
            explorer.process.kill()
        explorer.process.communicate()


@pytest.fixture(scope="module")
def explorer():
    """One explorer for the tests of a file."""
    one = Explorer("--no-browser")
    yield one
    code, error = one.end()
    assert code == 0, error


@pytest.fixture(scope="module")
def browser(explorer):
    """One browser for the tests of a file."""
    from browser import Page  # tests of the server need none

    one = Page(explorer)
    yield one
    one.close()


@pytest.fixture
def page(browser):
    """The page in it, about which the browser may not complain."""
    browser.resize(1200)
    browser.messages()
    yield browser
    assert browser.messages() == []
