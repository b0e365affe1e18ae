"""A handler for Python's HTTP server that serves files with byte ranges, as object stores and CDNs do."""

from __future__ import annotations

import os
import re
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import unquote

__all__ = ["FileHandler"]

_RANGE = re.compile(r"bytes=(\d*)-(\d*)$")


class FileHandler(BaseHTTPRequestHandler):
    """GET and HEAD for files below ``root``, which a subclass sets."""

    root = Path()
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer with a file, or with the part of it that a Range header names."""
        self._answer(body=True)

    def do_HEAD(self) -> None:
        """Answer with a file's size and time."""
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        file = (self.root / unquote(self.path.split("?")[0]).lstrip("/")).resolve()
        if not file.is_file() or not file.is_relative_to(self.root.resolve()):
            self._send(HTTPStatus.NOT_FOUND, {}, b"")
            return
        status = file.stat()
        headers = {"Accept-Ranges": "bytes", "Last-Modified": self.date_time_string(int(status.st_mtime))}
        start, end = 0, status.st_size
        answer = HTTPStatus.OK
        if found := _RANGE.match(self.headers.get("Range", "")):
            start, end = _bounds(found[1], found[2], status.st_size)
            if start >= end:
                none = {"Content-Range": f"bytes */{status.st_size}"}
                self._send(HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE, none, b"")
                return
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{status.st_size}"
            answer = HTTPStatus.PARTIAL_CONTENT
        with open(file, "rb") as opened:
            content = os.pread(opened.fileno(), end - start, start) if body else b""
        self._send(answer, headers, content, length=end - start)

    def _send(self, status: HTTPStatus, headers: dict[str, str], content: bytes, length: int | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content) if length is None else length))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the tests are the log."""


def _bounds(first: str, last: str, size: int) -> tuple[int, int]:
    """Start and end of ``bytes=first-last``; a missing first means the last so many bytes."""
    if not first:
        return max(0, size - int(last or 0)), size
    return int(first), min(size, int(last) + 1 if last else size)
