"""`monitor --serve` over the protocol: who gets an answer, what the headers say, how the page grows, and how it ends."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from monitor_samples import records
from pages import Element, checked, parsed

from ldlm_lint.cli import main
from ldlm_lint.monitor import live, serving
from ldlm_lint.monitor.arrivals import Arrivals
from ldlm_lint.monitor.health import Health
from ldlm_lint.monitor.serving import Board, Server

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7 * 7 }}"


def line(step: int, loss: float | str = 2.5) -> str:
    return f"iter {step}: loss {loss}, time 65.00ms, mfu 0.02%\n"


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


def ask(address: str, name: str = "", *, method: str = "GET", headers: Mapping[str, str] = {}, whole: str | None = None) -> Answer:
    """One request; ``whole`` is a path in place of the page's own with ``name`` behind it."""
    at = urlsplit(address)
    link = http.client.HTTPConnection("127.0.0.1", at.port, timeout=20)
    try:
        link.request(method, at.path + name if whole is None else whole, headers=dict(headers))
        answer = link.getresponse()
        return Answer(answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read())
    finally:
        link.close()


def raw(address: str, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", urlsplit(address).port or 0), timeout=20) as link:
        link.sendall(request)
        return link.makefile("rb").read()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    # No loop reads logs behind this board: nobody has to wait for it.
    monkeypatch.setattr(serving, "FRESH", 0.0)
    server = Server(Board("train.log"))
    yield server
    server.close()


@contextmanager
def followed(path: Path) -> Iterator[str]:
    """The address of the page of a log that is followed in this process."""
    board, health, done = Board(path.name), Health(), threading.Event()
    server = Server(board)
    arrivals = Arrivals([str(path)], clock=lambda: 0.0)
    with open(os.devnull, "w") as stream:
        options = {"least_silence": 120.0, "stop": done.is_set, "poll": 0.02, "arrivals": arrivals, "board": board}
        thread = threading.Thread(target=live.follow, args=(health, [], stream), kwargs=options)
        thread.start()
        try:
            yield server.address
        finally:
            done.set()
            thread.join()
            server.close()


def until(true: Callable[[], object], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "never true"
        time.sleep(0.02)


def verdict(page: Element) -> str:
    (state,) = page.all(id="state")
    return next(state.all("h2")).text


def part(address: str) -> Element:
    return parsed(ask(address, "run").text)


def test_the_address_holds_a_token_that_is_new_each_time() -> None:
    found = set()
    for _ in range(3):
        server = Server(Board("train.log"))
        found.add(server.address.rsplit(":", 1)[1].split("/", 1)[1])
        server.close()
    assert len(found) == 3 and all(re.fullmatch(r"[\w-]{32}/", token) for token in found)


@pytest.mark.parametrize("path", ["/", "/run", "", "/x/", "/x/run", "//", "/../", "/%2e%2e/", "/favicon.ico"])
def test_without_the_token_there_is_nothing(server: Server, path: str) -> None:
    answer = ask(server.address, whole=path or "*")
    assert answer.status == 404 and answer.text == "404 Not Found\n"


def test_a_token_that_is_nearly_right_is_wrong(server: Server) -> None:
    path = urlsplit(server.address).path
    for wrong in (path[:-2] + "/", path[:-1], path.swapcase(), path + "x", path + "run/", path + "../", path.replace("/", "%2F")):
        assert ask(server.address, whole=wrong).status == 404, wrong


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "[::2]:80", "", "0.0.0.0", "127.0.0.1, evil", "127.0.0.1:80@evil.example", "[::1]evil.example", "localhost:80:evil"])
def test_another_name_for_this_machine_is_refused(server: Server, host: str) -> None:
    assert ask(server.address, headers={"Host": host}).status == 403


@pytest.mark.parametrize("host", ["127.0.0.1:9", "localhost", "LOCALHOST:8000", "[::1]:7"])
def test_the_names_of_this_machine_are_right_on_any_port_of_a_tunnel(server: Server, host: str) -> None:
    assert ask(server.address, headers={"Host": host}).status == 200


def test_no_host_or_two_hosts_are_refused(server: Server) -> None:
    path = urlsplit(server.address).path.encode()
    for hosts in (b"", b"Host: localhost\r\nHost: evil.example\r\n"):
        assert raw(server.address, b"GET " + path + b" HTTP/1.1\r\n" + hosts + b"\r\n").startswith(b"HTTP/1.0 403 ")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD", "TRACE"])
def test_nothing_but_reading_is_allowed(server: Server, method: str) -> None:
    answer = ask(server.address, method=method)
    assert answer.status == 405 and answer.headers["allow"] == "GET"
    assert "access-control-allow-origin" not in answer.headers


def test_what_is_no_request_is_refused_and_not_repeated(server: Server) -> None:
    for request in (b"BREW /<b> HTTP/1.1\r\n\r\n", b"GET\r\n\r\n", b"GET /<b> HTTP/9.9\r\n\r\n", b"\x16\x03\x01<b>\r\n\r\n", b"GET /" + b"<b>" * 30000 + b" HTTP/1.1\r\n\r\n"):
        answer = raw(server.address, request)
        assert b"<b>" not in answer and re.match(rb"(HTTP/1.0 )?[45]\d\d [A-Z]", answer), (request[:20], answer)


@pytest.mark.parametrize("name", ["", "run", "nothing"])
def test_the_headers_keep_others_out(server: Server, name: str) -> None:
    headers = ask(server.address, name).headers
    assert headers["cache-control"] == "no-store" and headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer" and headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    # The page itself says what it loads.
    assert ("default-src 'none'" in headers["content-security-policy"]) is (name != "")
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert not [key for key in headers if key.startswith("access-control-")]
    assert headers["server"].strip() == "ldlm-lint"


def test_the_page_may_ask_its_own_server_and_nobody_else(server: Server) -> None:
    page = checked(ask(server.address).text)
    (policy,) = (meta.attributes["content"] for meta in page.all("meta") if meta.attributes.get("http-equiv"))
    assert policy.startswith("default-src 'none'") and "connect-src 'self'" in policy


def test_the_page_grows_with_the_log(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    with followed(log) as address:
        page = checked(ask(address).text)
        assert verdict(page) == "Waiting for the log" and str(log) in page.text
        log.write_text("".join(line(step, 2.5 + step % 3 / 100) for step in range(30)))
        until(lambda: verdict(part(address)) == "No alarms so far")
        tag = ask(address, "run").headers["etag"]
        assert ask(address, "run", headers={"If-None-Match": tag}).status == 304
        with log.open("a") as file:
            file.write(line(30, "nan"))
        until(lambda: verdict(part(address)) == "1 alarm: 1 critical")
        changed = ask(address, "run", headers={"If-None-Match": tag})
        assert changed.status == 200 and changed.headers["etag"] != tag
        assert [card.attributes["data-words"] for card in part(address).all("article")] == ["critical, Loss is not a number, train.log:31 (step 30)"]


def test_all_logs_of_a_folder_are_on_one_page(tmp_path: Path) -> None:
    with followed(tmp_path) as address:
        for rank in range(2):
            (tmp_path / f"rank{rank}.log").write_text("".join(f"[rank{rank}]: step {step} loss {2.5 - step / 100}\n" for step in range(40)))
        until(lambda: "rank1.log rank 1" in part(address).text)
        (loss,) = part(address).all("figure", kind="chart")
        assert [name.text for name in loss.all("span", kind="name")] == ["rank0.log rank 0", "rank1.log rank 1"]


def test_a_silent_log_is_said_on_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "FRESH", 0.0)
    now = [0.0]
    quiet = live.Quiet(least=60.0, clock=lambda: now[0])
    for _ in range(10):
        now[0] += 2
        quiet.news()
    assert quiet.lasting is None
    now[0] += 185
    assert quiet.silence() and quiet.lasting == 180.0
    board, health = Board("train.log", clock=lambda: now[0]), Health()
    for step in range(5):
        for record in records(line(step)):
            health.take("train.log", None, (record,))
    health.poll()
    board._newest()
    board.offer(health, serving.Now(silent=quiet.lasting))
    page = checked(board.page().decode())
    assert "No new line for 3 min, " in page.text


def test_nothing_is_drawn_while_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "FRESH", 0.0)
    now = [0.0]
    board, health = Board("train.log", clock=lambda: now[0]), Health()
    board.offer(health, serving.Now(waiting=("train.log",)))
    assert "train.log" not in board._values["waiting"]
    board._newest()
    board.offer(health, serving.Now(waiting=("train.log",)))
    assert "train.log" in board._values["waiting"]
    now[0] += serving.WATCHED + 1
    board.offer(health, serving.Now(waiting=("other.log",)))
    assert board._values["waiting"] == ["train.log"]


def test_nothing_of_a_hostile_log_acts(tmp_path: Path) -> None:
    log = tmp_path / "x'><svg onload=alert(3)>.log"
    log.write_text("".join(f"step {step} {HOSTILE} loss {2.5 - step / 100}\n" for step in range(50)) + f"ValueError: {HOSTILE}\n[rank1]: torch.OutOfMemoryError: CUDA out of memory. {HOSTILE}\n")
    with followed(log) as address:
        until(lambda: list(part(address).all("article")))
        for page in (checked(ask(address).text), part(address)):
            assert not list(page.all("img")) and not list(page.all("svg", onload="alert(3)"))
            assert len(list(page.all("script"))) <= 1 and HOSTILE in page.text


def test_readers_who_never_read_and_never_ask_stop_neither_the_loop_nor_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "LONGEST", 1.0)
    log = tmp_path / "train.log"
    log.write_text("".join(line(step) for step in range(30)))
    links: list[socket.socket] = []
    with followed(log) as address:
        at = urlsplit(address)
        for number in range(2 * serving.MOST_READERS):
            link = socket.create_connection(("127.0.0.1", at.port or 0), timeout=20)
            links.append(link)
            if number % 2:
                link.sendall(f"GET {at.path} HTTP/1.1\r\nHost: localhost\r\nX-Slow: ".encode())
        assert threading.active_count() < serving.MOST_READERS + 10
        with log.open("a") as file:
            file.write(line(30, "nan"))
        # Who was there first is cut after a second; then there is room again.
        until(lambda: ask_if_there_is_room(address) == "1 alarm: 1 critical")
        for link in links:
            link.close()


def ask_if_there_is_room(address: str) -> str:
    try:
        answer = ask(address, "run")
    except OSError:
        return "no answer"
    return verdict(parsed(answer.text)) if answer.status == 200 else str(answer.status)


def test_a_reader_without_a_thread_keeps_no_place(server: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def refused(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        for _ in range(serving.MOST_READERS + 1):
            raw(server.address, b"GET / HTTP/1.1\r\n\r\n")
    assert ask(server.address).status == 200


def test_too_many_readers_are_told_to_come_again(server: Server) -> None:
    port = urlsplit(server.address).port or 0
    links = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(serving.MOST_READERS)]
    until(lambda: len(server._http._begun) == serving.MOST_READERS)
    assert ask(server.address).status == 503
    for link in links:
        link.close()
    until(lambda: ask_if_there_is_room(server.address) == "Waiting for the log")


def started(*words: str, **options: object) -> tuple[subprocess.Popen[str], str]:
    command = [sys.executable, "-m", "ldlm_lint", "monitor", "--serve", "--interval", "0.1", *words]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload]
    assert child.stderr is not None
    address = child.stderr.readline().split()[0]
    return child, address


@pytest.mark.parametrize(("loss", "code"), [(2.5, 0), ("nan", 1)])
def test_ctrl_c_stops_the_server_and_prints_the_report(tmp_path: Path, loss: float | str, code: int) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(line(step, 2.5 + step % 3 / 100) for step in range(30)) + line(30, loss))
    child, address = started(str(log))
    with child:
        until(lambda: "31" in part(address).text)
        os.kill(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == code, err
    assert "31 records in 1 source." in out and "Traceback" not in err
    with pytest.raises(OSError):
        ask(address)


@pytest.mark.parametrize("ends", [True, False])
def test_standard_input_is_shown_while_it_comes_and_after_its_end(ends: bool) -> None:
    child, address = started("-", stdin=subprocess.PIPE)
    with child:
        assert child.stdin is not None
        child.stdin.write("".join(line(step) for step in range(30)))
        child.stdin.flush()
        until(lambda: verdict(part(address)) == "No alarms so far")
        if ends:
            child.stdin.close()
            child.stdin = None
            until(lambda: "The log has ended" in part(address).text)
        os.kill(child.pid, signal.SIGINT)
        out, err = child.communicate(timeout=60)
    assert child.returncode == 0 and "30 records in 1 source." in out, err


def test_a_port_that_is_taken_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["monitor", "--serve", "--port", str(port), str(tmp_path)]) == 2
    assert f"--port {port}: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["x.log", "--port", "8000"], "--port belongs to --serve"),
        (["x.log", "--open"], "--open belongs to --serve"),
        (["--compare", "a", "b", "--serve"], "leave out --serve"),
        (["x.log", "--serve", "--port", "0"], "is not a port"),
    ],
)
def test_what_is_refused_at_the_start(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["monitor", *words]) == 2
    assert said in capsys.readouterr().err
