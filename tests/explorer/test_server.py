# SPDX-License-Identifier: MIT
"""Who may ask the server, what, how much at once; and how it ends."""
import base64
import concurrent.futures
import hashlib
import json
import os
import random
import re
import select
import subprocess
import time

import pytest

from conftest import LONG, PROGRAM, Explorer, bayesaim

POINT = {"width": "0.5", "alpha": "0.1"}
# Too long for any test: the server must end it.
ENDLESS = {"width": "0.5", "alpha": "0.12", "dim": "250", "iterations": "1000", "tolerance": "1e-300"}
SLOW = {"channel": "deep-softmax", "layers": "3", "alpha": "0.1:1:900"}


def error_of(text: str) -> str:
    return json.loads(text)["error"]


# ---- who may ask ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "example.org"},
        {"Host": "example.org:80"},
        {"Host": "localhost.example.org"},
        {"Host": "127.0.0.1.example.org"},
        {"Host": ""},
        {"Origin": "http://example.org"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/run/theory", "/stream/amp"])
def test_foreign_host_and_origin_are_refused(explorer, headers, path):
    status, text = explorer.get(path, headers, **POINT)
    assert status in (400, 403)
    assert "estimation_error" not in text and "<html" not in text


@pytest.mark.parametrize("path", ["/", "/run/theory", "/stream/amp", "/nothing"])
def test_a_request_without_the_token_is_refused(explorer, path):
    for token in ["", "token=", "token=" + "0" * 32, f"token={explorer.token[:-1]}", f"token={explorer.token}&token=x"]:
        answer = explorer.raw(f"GET {path}?{token} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 403"), token
        assert explorer.token.encode() not in answer


def test_two_hosts_are_refused(explorer):
    request = f"GET /?token={explorer.token} HTTP/1.1\r\nHost: localhost\r\nHost: example.org\r\n\r\n"
    assert explorer.raw(request.encode()).startswith(b"HTTP/1.1 403")


def test_loopback_names_and_the_page_itself_are_answered(explorer):
    for host in ["localhost", "127.0.0.1", "[::1]", f"localhost:{explorer.port}", "localhost:9000"]:  # 9000: a tunnel
        assert explorer.get("/run/theory", {"Host": host}, **POINT)[0] == 200
    same = f"http://127.0.0.1:{explorer.port}"
    assert explorer.get("/run/theory", {"Origin": same}, **POINT)[0] == 200


def test_it_listens_on_loopback_only(explorer):
    with open("/proc/net/tcp") as file:
        listening = {line.split()[1] for line in file.readlines()[1:] if line.split()[3] == "0A"}
    mine = {address for address in listening if int(address.split(":")[1], 16) == explorer.port}
    assert mine == {f"0100007F:{explorer.port:04X}"}


# ---- what is served ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["/../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/run/../../../etc/passwd", "//etc/passwd", "/run/",
     "/run/figure", "/run/fit", "/run/explore", "/stream/sweep", "/index.html", "/favicon.ico", "/run/theory/"],
)
def test_nothing_but_the_page_and_its_requests_is_served(explorer, path):
    request = f"GET {path}?token={explorer.token} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = explorer.raw(request.encode())
    assert re.match(rb"HTTP/1.1 40[04]", answer), answer[:60]
    assert b"root:" not in answer


def test_other_methods_are_refused(explorer):
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "HEAD", "TRACE", "BREW"]:
        request = f"{method} /run/theory?token={explorer.token}&width=0.5&alpha=0.1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"
        answer = explorer.raw(request.encode())
        assert re.match(rb"HTTP/1.1 40[05]", answer), answer[:60]


@pytest.mark.parametrize("command", ["theory", "threshold", "phase", "spectrum", "samples", "amp"])
@pytest.mark.parametrize("option", ["output", "plot", "record", "spectrum", "threads", "strict", "help", "version"])
def test_options_that_name_files_or_use_the_machine_are_refused(explorer, command, option):
    if (command, option) == ("spectrum", "spectrum"):
        option = "plot"
    status, text = explorer.get(f"/run/{command}", **{option: "/tmp/explorer-was-here"})
    assert status == 400
    assert f"takes no option '{option}'" in error_of(text)
    assert not os.path.exists("/tmp/explorer-was-here")


def test_a_value_cannot_be_another_option(explorer, tmp_path):
    for value in [f"0.5 --output {tmp_path}/x", f"--output={tmp_path}/x", f"0.5\x00--output={tmp_path}/x"]:
        _, text = explorer.get("/run/theory", width=value, alpha="0.1")
        assert "--width must be" in error_of(text)
    assert list(tmp_path.iterdir()) == []


def test_the_page_is_small_whole_and_protected(explorer):
    answer = explorer.raw(f"GET /?token={explorer.token} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    head, page = answer.split(b"\r\n\r\n", 1)
    assert len(page) < 500_000
    policy = re.search(rb"Content-Security-Policy: (.*)\r\n", head).group(1).decode()
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    for tag in ["script", "style"]:
        inside = re.search(rf"<{tag}>(.*?)</{tag}>".encode(), page, re.S).group(1)
        digest = base64.b64encode(hashlib.sha256(inside).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy
    elsewhere = set(re.findall(rb"https?://[^\s\"'`)<]*", page)) - {b"http://www.w3.org/"}
    assert {address for address in elsewhere if not address.startswith(b"http://www.w3.org/")} == set()
    for header in [b"X-Content-Type-Options: nosniff", b"Referrer-Policy: no-referrer", b"Cache-Control: no-store"]:
        assert header in head


# ---- the same numbers as the program -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "command, options",
    [
        ("theory", {"width": "0.5", "alpha": "0:0.3:20"}),
        ("theory", {"channel": "hardmax", "tokens": "3", "width": "0.7", "alpha": "log:0.1:5:9"}),
        ("theory", {"channel": "linear", "label-noise": "0.2", "attention": "cross", "alpha": "0.1,0.2"}),
        ("theory", {"width": "0.5", "alpha": "0.12", "trajectory": "12"}),
        ("threshold", {"width": "0.25,0.5"}),
        ("phase", {"alpha": "0:0.3:5", "width": "0.2:1:4"}),
        ("spectrum", {"width": "0.5", "noise-variance": "0.1", "eigenvalues": "", "dim": "40", "seed": "3"}),
        ("theory", {"width": "0.5", "alpha": "0.05,0.1", "format": "csv"}),
    ],
)
def test_answers_are_what_the_program_prints(explorer, command, options):
    status, text = explorer.get(f"/run/{command}", **options)
    assert status == 200
    words = [f"--{name}" if value == "" else f"--{name}={value}" for name, value in options.items()]
    if "format" not in options:
        words.append("--format=json")
    assert text == bayesaim(command, *words)


def test_amp_has_the_bits_of_the_program_while_another_runs(explorer):
    options = {"width": "0.5", "alpha": "0.12", "dim": "60", "iterations": "20", "seed": "5"}
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        answers = list(threads.map(lambda _: json.loads(explorer.get("/run/amp", **options)[1]), range(4)))
    printed = json.loads(bayesaim("amp", *[f"--{name}={value}" for name, value in options.items()], "--format=json"))
    for answer in [*answers, printed]:
        assert answer["points"][0].pop("seconds_per_iteration") > 0
    assert all(answer == printed for answer in answers)


def test_mistakes_get_the_message_of_the_program(explorer):
    for options, message in [
        ({"width": "-1", "alpha": "0.1"}, "--width must be positive and finite, got -1"),
        ({"alpha": "0.1", "channel": "sofmax"}, "--channel must be one of"),
        ({"alpha": "0.1,"}, "--alpha must be a number, a list"),
        ({"alpha": "\xff\xfe"}, "--alpha must be a number, a list"),
        ({}, "--alpha is required"),
    ]:
        assert message in error_of(explorer.get("/run/theory", **options)[1])


# ---- how much ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command, options, message",
    [
        ("theory", {"alpha": "0:1:1001"}, "--alpha must have at most 1000 points"),
        ("theory", {"alpha": "0:1:1e9"}, "--alpha must have at most 1000 points"),
        ("theory", {"alpha": ",".join(["1"] * 1001)}, "--alpha must have at most 1000 points"),
        ("theory", {"alpha": "0.1", "tokens": "100000"}, "--tokens must be at most 64"),
        ("theory", {"alpha": "0.1", "width": ",".join(["1"] * 11)}, "--width must have at most 10 points"),
        ("phase", {"alpha": "0:1:400", "width": "0.1:1:400"}, "must have at most 10000 points together"),
        ("spectrum", {"noise-variance": "0.1", "dim": "5000"}, "--dim must be at most 1000"),
        ("amp", {"alpha": "0.1", "dim": "501"}, "--dim must be at most 500"),
        ("amp", {"alpha": "100", "dim": "400"}, "must make at most 5e+07 numbers"),
        ("amp", {"alpha": "0.1", "dim": "300", "width": "900"}, "must make at most 5e+07 numbers of weights"),
        ("spectrum", {"noise-variance": "1", "eigenvalues": "", "width": "100"}, "must make at most 5e+07 numbers of weights"),
        ("spectrum", {"noise-variance": "1", "prior": "bilinear", "width": "1e-30"}, "--width must be between 0.001 and 1000 here"),
        ("theory", {"alpha": "0.1", "scale": "1e30"}, "--scale must be at most 1000 here"),
        ("spectrum", {"noise-variance": "nan"}, "--noise-variance must be"),
        ("amp", {"alpha": "0.1,0.2"}, "--alpha must have at most 1 points"),
    ],
)
def test_sizes_are_bounded(explorer, command, options, message):
    status, text = explorer.get(f"/run/{command}", **options)
    assert status == 400
    assert message in error_of(text)


def test_times_are_bounded(start):
    explorer = start("--time-limit", "1")
    status, text = explorer.get("/run/theory", **SLOW)
    assert status == 200
    assert error_of(text) == "stopped after 1 s, the limit here; the same command in a terminal has none"


class Stream:
    """The events of a command."""

    def __init__(self, explorer: Explorer, kind: str, command: str, options: dict):
        self.connection = explorer.connect()
        path = explorer.url(f"/{kind}/{command}", **options).split(str(explorer.port), 1)[1]
        self.connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        self.seen = b""

    def news(self) -> None:
        """Returns once there is another event."""
        before = self.seen.count(b"event:")
        while self.seen.count(b"event:") == before:
            piece = self.connection.recv(1 << 16)
            assert piece, self.seen[-200:]
            self.seen += piece

    def drain(self) -> None:
        """Reads to the end."""
        while self.connection.recv(1 << 16):
            pass

    def silent(self) -> bool:
        """Whether there was no event yet."""
        while select.select([self.connection], [], [], 0)[0]:
            piece = self.connection.recv(1 << 16)
            if not piece:
                break
            self.seen += piece
        return b"event:" not in self.seen

    def close(self) -> None:
        self.connection.close()


def test_two_computations_run_at_once_and_end_when_the_page_goes_away(start):
    explorer = start()
    running = [Stream(explorer, "stream", "amp", ENDLESS) for _ in range(2)]
    for stream in running:
        stream.news()
    third = Stream(explorer, "stream", "amp", ENDLESS)
    until = time.monotonic() + 4  # a request waits 10 s for its turn
    for _ in range(20):
        if time.monotonic() > until:
            break
        running[0].news()
        running[1].news()
    assert third.silent()
    running[0].close()
    third.news()  # its turn
    running[1].close()
    third.close()
    # Nothing runs any more, also of requests that tell no news: an answer does not have to wait for them.
    for _ in range(2):
        Stream(explorer, "run", "theory", SLOW).close()
    status, text = explorer.get("/run/theory", **POINT)
    assert status == 200 and "points" in json.loads(text)


def test_a_third_that_waits_too_long_is_told_so(start):
    explorer = start()
    running = [Stream(explorer, "stream", "amp", ENDLESS) for _ in range(2)]
    for stream in running:
        stream.news()
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        for stream in running:
            threads.submit(stream.drain)
        assert error_of(explorer.get("/run/theory", **POINT)[1]).startswith("other computations are running")
        explorer.end()


def test_two_hundred_at_once(explorer):
    expected = bayesaim("theory", "--width=0.5", "--alpha=0.1", "--format=json")
    with concurrent.futures.ThreadPoolExecutor(200) as threads:
        answers = list(threads.map(lambda _: explorer.get("/run/theory", **POINT), range(200)))
    assert set(answers) == {(200, expected)}


# ---- random and malformed requests -----------------------------------------------------------------------------

NAMES = ["alpha", "width", "channel", "tokens", "beta", "label-noise", "attention", "prior", "layers", "heads", "dim", "seed", "format",
         "noise-variance", "target-error", "trajectory", "exponent", "output", "", "token", "x" * 300]
VALUES = ["0", "-1", "1", "0.5", "1e308", "1e-308", "nan", "inf", "1e400", "0:1:5", "1:0:5", "::", "log:0:1:3", "0.1x", "softmax", "hardmax",
          "linear", "deep-softmax", "causal", "bilinear", "wigner", "2147483648", "-0", "", "%00", "\xff", "json", "csv", "' OR 1", "9" * 400]


def random_request(generator: random.Random, token: str) -> tuple[bytes, bool]:
    """A request, and whether it is whole."""
    kind = generator.random()
    command = generator.choice(["theory", "threshold", "phase", "spectrum", "samples", "amp", "fit", ""])
    options = [f"{generator.choice(NAMES)}={generator.choice(VALUES)}" for _ in range(generator.randrange(5))]
    query = "&".join([f"token={token}" if generator.random() < 0.7 else "token=0", *options])
    request = bytearray(f"GET /{generator.choice(['run', 'stream', 'x'])}/{command}?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode("latin1"))
    if kind < 0.25:  # some bytes are others
        for _ in range(generator.randrange(1, 12)):
            request[generator.randrange(len(request))] = generator.randrange(256)
    elif kind < 0.4:  # it ends in the middle
        del request[generator.randrange(len(request)) :]
    elif kind < 0.55:
        request = bytearray(generator.randbytes(generator.randrange(1, 400)))
    elif kind < 0.65:  # long lines
        request = bytearray(b"GET /" + b"a" * generator.randrange(20000) + b" HTTP/1.1\r\nHost: " + b"b" * generator.randrange(20000) + b"\r\n\r\n")
    elif kind < 0.75:
        head = generator.choice([b"Content-Length: 99999999999", b"Content-Length: -1", b"Transfer-Encoding: chunked", b"Range: bytes=0-1,5-,-9", b"Expect: 100-continue"])
        request = bytearray(bytes(request[:-2]) + head + b"\r\n\r\n" + generator.randbytes(generator.randrange(200)))
    return bytes(request), kind >= 0.75


def test_ten_thousand_random_and_malformed_requests(start):
    explorer = start("--time-limit", "1")

    def send(seed: int) -> None:
        generator = random.Random(seed)
        for _ in range(250):
            explorer.raw(*random_request(generator, explorer.token))

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        list(threads.map(send, range(8)))  # what is made once is made
        before = explorer.memory()
        list(threads.map(send, range(100, 132)))
        status, text = explorer.get("/run/theory", **POINT)
        assert status == 200 and "points" in json.loads(text)
        assert explorer.get("/")[0] == 200
        # 8000 requests that each kept a kilobyte would be 8 MB. A sanitizer keeps freed memory for a while.
        assert "BAYESAIM_SANITIZED" in os.environ or explorer.memory() - before < 8e6
    assert explorer.process.poll() is None
    assert explorer.end()[0] == 0


# ---- beginning and end --------------------------------------------------------------------------------------------


def fails(*arguments: str, **environment: str) -> str:
    run = subprocess.run([PROGRAM, "explore", *arguments], capture_output=True, text=True, timeout=LONG, env={**os.environ, **environment})
    assert run.returncode == 1
    assert run.stdout == "" and run.stderr.count("\n") == 1
    return run.stderr


def test_bad_calls_get_one_line(start):
    taken = start().port
    assert f"port {taken} of 127.0.0.1 is taken" in fails("--no-browser", "--port", str(taken))
    assert "--port must be between 0 and 65535" in fails("--port", "65536")
    assert "--host 0.0.0.0 needs --token TEXT: whoever reaches this port" in fails("--host", "0.0.0.0")
    assert "--token must be at least 16 characters long" in fails("--token", "short")
    assert "--token must be made of letters" in fails("--token", "with space and more")
    assert "--host must be an address of this machine" in fails("--host", "203.0.113.7", "--token", "0123456789abcdef")


def test_another_host_needs_its_token_and_says_what_it_means(start):
    explorer = start("--host", "127.0.0.2", "--token", "0123456789abcdef")
    assert explorer.token == "0123456789abcdef"
    assert explorer.get("/run/theory", **POINT)[0] == 200
    assert explorer.get("/run/theory", {"Host": "example.org"}, **POINT)[0] == 403
    code, error = explorer.end()
    assert code == 0
    assert "other machines reach 127.0.0.2: whoever knows the token can compute here, and the traffic is not encrypted" in error


@pytest.mark.parametrize(
    "environment, line",
    [
        ({}, "no display here; open the address in a browser"),
        ({"DISPLAY": ":99", "PATH": "/nonexistent"}, "no browser was found (xdg-open); open the address in a browser"),
    ],
)
def test_without_display_or_browser_the_address_is_enough(environment, line):
    hidden = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    explorer = Explorer(environment={**hidden, **environment})
    assert explorer.get("/run/theory", **POINT)[0] == 200
    code, error = explorer.end()
    assert code == 0 and line in error


def test_ctrl_c_during_a_stream_ends_cleanly(start):
    explorer = start()
    stream = Stream(explorer, "stream", "amp", ENDLESS)
    stream.news()
    code, error = explorer.end()
    assert code == 0
    assert error.splitlines()[-2:] == ["bayesaim: stopping; press Ctrl-C again to quit at once", "bayesaim: the explorer has ended"]
    stream.close()


def test_ctrl_c_right_after_the_address_ends_it(start):
    assert [start().end()[0] for _ in range(5)] == [0] * 5  # before it listens, mostly


def test_it_works_without_any_network():
    script = f"ip link set lo up && exec {PROGRAM} explore --no-browser"
    if subprocess.run(["unshare", "-n", "sh", "-c", "ip link set lo up"], capture_output=True).returncode != 0:
        pytest.skip("unshare -n is not allowed here")
    process = subprocess.Popen(["unshare", "-n", "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    address = process.stdout.readline().strip()
    inside = ["nsenter", "-t", str(process.pid), "-n", "python3", "-c", f"import urllib.request as r; print(len(r.urlopen('{address}').read()))"]
    size = int(subprocess.run(inside, check=True, capture_output=True, text=True).stdout)
    process.send_signal(2)
    process.communicate(timeout=LONG)
    assert 10_000 < size < 500_000
    assert process.returncode == 0
