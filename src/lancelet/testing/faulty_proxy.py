"""A proxy on loopback that hands requests to a real server and fails some of them as told."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import urlsplit

__all__ = ["Fault", "FaultyProxy", "faulty_proxy"]

#: What happens to a request: nothing bad, a 503 without reaching the server, a closed connection before it reached the
#: server, or one after the server did what was asked (the answer is lost).
Fault = Literal["none", "unavailable", "refused", "answer lost", "half an answer"]


@dataclass(slots=True)
class FaultyProxy:
    """A running proxy; ``requests`` lists the verb and path of each that came in."""

    endpoint: str
    #: Names the fault of a request from its verb and path.
    decide: Callable[[str, str], Fault] | None = None
    requests: list[tuple[str, str]] = field(default_factory=list)

    def fail_next(self, count: int, fault: Fault, verb: str) -> None:
        """Fail the next ``count`` requests of a verb, then none."""
        left = [fault] * count
        lock = threading.Lock()

        def decide(asked: str, _path: str) -> Fault:
            with lock:
                return left.pop() if asked == verb and left else "none"

        self.decide = decide


@contextmanager
def faulty_proxy(upstream: str) -> Iterator[FaultyProxy]:
    """Run a proxy in front of the server at ``upstream``, such as ``http://127.0.0.1:4566``."""
    host = urlsplit(upstream).netloc
    verbs = {f"do_{verb}": _Handler.forward for verb in ("GET", "HEAD", "PUT", "POST", "DELETE")}
    proxy = FaultyProxy("")
    handler = type("Handler", (_Handler,), {"host": host, "proxy": proxy, **verbs})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    proxy.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    """Forwards one connection's requests."""

    host = ""
    proxy: FaultyProxy
    protocol_version = "HTTP/1.1"

    def forward(self) -> None:
        """Do with one request what was decided for it."""
        self.proxy.requests.append((self.command, self.path))
        fault = self.proxy.decide(self.command, self.path) if self.proxy.decide else "none"
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if fault == "refused" or len(body) < length:
            # A client that gave up in the middle must not leave the server waiting for the rest.
            self.close_connection = True
            return
        if fault == "unavailable":
            self._answer(503, [], b"", 0)
            return
        upstream = http.client.HTTPConnection(self.host, timeout=30)
        try:
            upstream.request(self.command, self.path, body=body, headers=dict(self.headers))
            answer = upstream.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException):
            # The server hung up; so do we.
            fault = "answer lost"
        finally:
            upstream.close()
        if fault == "answer lost":
            self.close_connection = True
            return
        size = int(answer.headers.get("Content-Length", len(content)))
        if fault == "half an answer":
            self.close_connection = True
            content = content[: len(content) // 2]
        self._answer(answer.status, answer.getheaders(), content, size)

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes, size: int) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(size))
        self.end_headers()
        self.wfile.write(content)
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the tests are the log."""
