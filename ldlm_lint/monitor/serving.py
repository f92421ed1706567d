"""A followed run in the browser: a server on this machine alone, whose address holds a random token.

The loop that reads the logs offers the state of the run to a `Board` and never waits for a reader. Threads of the
`Server`, one per request and at most `MOST_READERS`, turn it into pages. A request that takes longer than `LONGEST` is cut.
"""

from __future__ import annotations

import hashlib
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ldlm_lint.monitor import run_page
from ldlm_lint.monitor.health import Health
from ldlm_lint.monitor.now import Now

HOSTS = ("127.0.0.1", "localhost", "[::1]")
"""What a browser may call this machine. Any other name leads here by a trick: DNS rebinding."""
MOST_READERS, LONGEST = 32, 30.0
"""Requests at one time, and the seconds that each of them may take."""
WATCHED = 15.0
"""Seconds after a question in which the page is kept up to date; without readers nothing is drawn."""
FRESH = 2.0
"""Seconds that the first reader after a pause waits for the state of the run."""
_SHARE = 10.0
"""After a drawing, so many times its time goes to the logs."""
_POLICY = "frame-ancestors 'none'; base-uri 'none'; form-action 'none'; object-src 'none'"
_NOTHING = f"default-src 'none'; {_POLICY}"
"""What the page must not do, which says itself what it loads; and what other answers must not: anything."""
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Board:
    """The newest state of a run: written by the loop that reads logs, read by any number of threads.

    ``address`` is where it is shown; empty before a `Server` does.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.name, self.clock = name, clock
        self.address = ""
        self._changed = threading.Condition()
        self._drawing = threading.Lock()
        self._called = threading.Event()
        self._values: dict[str, Any] = run_page.values(Health(), Now())
        self._version = self._looks = 0
        self._seen: object = None
        self._due = 0.0
        self._asked: float | None = None
        self._part: tuple[int, bytes, str] | None = None

    def offer(self, health: Health, now: Now) -> None:
        """Store the state if there are readers, it has changed, and the last drawing is old enough."""
        start = self.clock()
        seen = _what(health, now)
        if not self._watched(start) or start < self._due:
            return
        if seen == self._seen:
            self._looked()
            return
        values = run_page.values(health, now)
        with self._changed:
            self._values, self._version, self._seen = values, self._version + 1, seen
        self._looked()
        end = self.clock()
        self._due = end + _SHARE * (end - start)

    def rest(self, seconds: float) -> None:
        """Wait until the next read of the logs; a new reader after a pause ends the wait."""
        if self._called.wait(seconds):
            self._called.clear()

    def page(self) -> bytes:
        """The whole page as it is now."""
        _, values = self._newest()
        return run_page.page_of(self.name, values).encode("utf-8", "backslashreplace")

    def part(self) -> tuple[bytes, str]:
        """The part that changes, and its tag."""
        version, values = self._newest()
        # One thread draws a version; the others use its result.
        with self._drawing:
            if self._part is None or self._part[0] != version:
                html = run_page.part(values).encode("utf-8", "backslashreplace")
                self._part = version, html, f'"{hashlib.sha256(html).hexdigest()[:32]}"'
            return self._part[1:]

    def _looked(self) -> None:
        with self._changed:
            self._looks += 1
            self._changed.notify_all()

    def _watched(self, now: float) -> bool:
        return self._asked is not None and now - self._asked <= WATCHED

    def _newest(self) -> tuple[int, dict[str, Any]]:
        with self._changed:
            now = self.clock()
            paused, self._asked, before = not self._watched(now), now, self._looks
            if paused:
                self._called.set()
                self._changed.wait_for(lambda: self._looks != before, FRESH)
            return self._version, self._values


def _what(health: Health, now: Now) -> object:
    """The contents of a page: while they are equal, nothing is new."""
    return (
        sum(source.lines for source in health.sources.values()),
        health.records,
        [(alarm.count, alarm.level, alarm.message) for alarm in health.book.alarms],
        *(now.waiting, now.silent, now.ended, now.gpus, now.heard),
    )


class Server:
    """Serves a board at ``address`` until it is closed. Raises OSError where the port is taken."""

    def __init__(self, board: Board, port: int = 0) -> None:
        token = secrets.token_urlsafe(24)
        self._http = _Http(("127.0.0.1", port), _handler(board, f"/{token}/"))
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.2}, daemon=True)
        self.address = board.address = f"http://127.0.0.1:{self._http.server_address[1]}/{token}/"
        self._thread.start()

    def close(self) -> None:
        """Stop; requests that are being answered are cut."""
        self._http.shutdown()
        self._http.server_close()
        self._http.cut(0.0)
        self._thread.join()


class _Http(ThreadingHTTPServer):
    """Bounded in requests and in their time."""

    daemon_threads = True
    block_on_close = False
    # Another program may not take the port over while this one serves it.
    allow_reuse_address = sys.platform != "win32"

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._room = threading.BoundedSemaphore(MOST_READERS)
        self._begun: dict[socket.socket, float] = {}
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give the request a thread, or reject it immediately if all are busy."""
        if not self._room.acquire(blocking=False):
            request.settimeout(0.1)
            try:
                request.sendall(b"HTTP/1.0 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n")
            finally:
                self.shutdown_request(request)
            return
        self._begun[request] = time.monotonic()
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no further thread can be started now
            self._done(request)
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer in a separate thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._done(request)

    def _done(self, request: Any) -> None:
        self._begun.pop(request, None)
        self._room.release()

    def service_actions(self) -> None:
        """Between two looks for new requests: cut those that take too long."""
        self.cut(LONGEST)

    def cut(self, seconds: float) -> None:
        """End the requests that began so many seconds ago or earlier."""
        now = time.monotonic()
        for request, begun in list(self._begun.items()):
            if now - begun >= seconds:
                try:
                    request.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # its thread has closed it meanwhile

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that disconnected is not an error of the monitor; other errors are shown."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


def _handler(board: Board, root: str) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        pass

    Handler.board, Handler.root = board, root
    return Handler


class _Handler(BaseHTTPRequestHandler):
    """Two answers: the page at the root, the part of it that changes at ``run``; no other address is served."""

    board: Board
    root: str
    timeout = LONGEST
    server_version, sys_version = "ldlm-lint", ""

    def do_GET(self) -> None:
        """Answer."""
        if not self._is_addressed_here():
            self.send_error(HTTPStatus.FORBIDDEN, "this name does not belong to this machine")
            return
        path = self.path.partition("?")[0]
        if not secrets.compare_digest(path[: len(self.root)].encode(), self.root.encode()):
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        name = path[len(self.root) :]
        if name == "":
            self._send(self.board.page())
        elif name == "run":
            part, tag = self.board.part()
            self._send(part, tag)
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def _refuse(self) -> None:
        self.send_error(HTTPStatus.METHOD_NOT_ALLOWED)

    do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = _refuse

    def _is_addressed_here(self) -> bool:
        """Whether the reader addresses this machine, at any port: a tunnel may have another one than the server."""
        said = self.headers.get_all("Host", [])
        if len(said) != 1:
            return False
        host = said[0].strip().lower()
        name, _, port = host.rpartition(":")
        return host in HOSTS or (name in HOSTS and port.isascii() and port.isdecimal())

    def _send(self, body: bytes, tag: str | None = None) -> None:
        if tag is not None and self.headers.get("If-None-Match") == tag:
            self.send_response(HTTPStatus.NOT_MODIFIED)
            self._end(tag)
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self._end(tag, _POLICY if tag is None else _NOTHING)
        self.wfile.write(body)

    def _end(self, tag: str | None = None, policy: str = _NOTHING) -> None:
        if tag is not None:
            self.send_header("ETag", tag)
        self.send_header("Content-Security-Policy", policy)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """A refusal as plain text, which repeats nothing of the request."""
        status = HTTPStatus(code)
        body = f"{status.value} {status.phrase}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET")
        self._end()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """The terminal belongs to the run."""
