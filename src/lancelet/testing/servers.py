"""Real object-store servers on loopback for tests: moto for S3, Azurite for Azure, a static one for HTTP.

Servers run in processes of their own and watch a pipe from this one, so they also end when this process is killed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import ThreadingHTTPServer
from pathlib import Path

from lancelet.errors import NotFound, Storage
from lancelet.testing.http_files import FileHandler

__all__ = ["ServedStore", "azure_server", "http_server", "install_azurite", "s3_server"]

AZURITE_VERSION = "3.35.0"
#: Seconds within which a server must answer.
START_UP = 60.0
_BUCKET = "lancelet-test"
# The account that every storage emulator has; public by design.
_ACCOUNT = "devstoreaccount1"
_ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
# moto looks whether an object exists and then writes it, as two steps: of racing conditional puts two may win, which S3
# excludes. One change at a time makes it tell the truth. The pipe's end means that whoever started it is gone.
_MOTO = """
import os, sys, threading
threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()
import moto.server
one_at_a_time = threading.Lock()
class Atomic(moto.server.DomainDispatcherApplication):
    def __call__(self, environ, start_response):
        if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            return super().__call__(environ, start_response)
        with one_at_a_time:
            return super().__call__(environ, start_response)
moto.server.DomainDispatcherApplication = Atomic
moto.server.main(sys.argv[1:])
"""
_AZURITE = """
process.stdin.on('end', () => process.exit(0)).resume();
const main = process.argv[1];
require(main);
"""


@dataclass(frozen=True, slots=True)
class ServedStore:
    """A bucket on a running server: what a store needs to reach it. Stores and pylance take the same options."""

    uri: str
    storage_options: dict[str, str] = field(repr=False)
    #: Where the server listens, such as ``http://127.0.0.1:4566``.
    endpoint: str

    def place(self) -> str:
        """The URI of a new, empty folder."""
        return f"{self.uri}/{uuid.uuid4()}"


@contextmanager
def s3_server() -> Iterator[ServedStore]:
    """A moto S3 server with an empty bucket."""
    if importlib.util.find_spec("moto") is None:
        raise NotFound("moto is not installed", hint="pip install 'moto[s3,server]'")
    with _server([sys.executable, "-c", _MOTO, "-H", "127.0.0.1", "-p", "{port}"]) as port:
        _ask(port, "PUT", f"/{_BUCKET}", {})
        endpoint = f"http://127.0.0.1:{port}"
        options = {
            "access_key_id": "test-key",
            "secret_access_key": "test-secret",
            "region": "us-east-1",
            "endpoint": endpoint,
            "allow_http": "true",
        }
        yield ServedStore(f"s3://{_BUCKET}", options, endpoint)


@contextmanager
def azure_server(cache: str | os.PathLike[str]) -> Iterator[ServedStore]:
    """An Azurite blob server with an empty container; npm installs it into ``cache`` the first time."""
    main = install_azurite(cache)
    command = ["node", "-e", _AZURITE, str(main), "--silent", "--skipApiVersionCheck", "--inMemoryPersistence"]
    with _server([*command, "--disableTelemetry", "--blobHost", "127.0.0.1", "--blobPort", "{port}"]) as port:
        _ask(port, "PUT", f"/{_ACCOUNT}/{_BUCKET}?restype=container", _signed_container_headers())
        endpoint = f"http://127.0.0.1:{port}/{_ACCOUNT}"
        options = {
            "account_name": _ACCOUNT,
            "account_key": _ACCOUNT_KEY,
            "azure_storage_endpoint": endpoint,
            "allow_http": "true",
        }
        yield ServedStore(f"az://{_BUCKET}", options, endpoint)


@contextmanager
def http_server(directory: str | os.PathLike[str]) -> Iterator[ServedStore]:
    """The files below a directory, with byte ranges, by threads of this process."""
    handler = type("Handler", (FileHandler,), {"root": Path(directory)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        endpoint = f"http://127.0.0.1:{server.server_address[1]}"
        yield ServedStore(endpoint, {}, endpoint)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def install_azurite(cache: str | os.PathLike[str]) -> Path:
    """The start script of Azurite below ``cache``, installed there if it is not; NotFound without node and npm."""
    folder = Path(cache)
    main = folder / "node_modules/azurite/dist/src/blob/main.js"
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise NotFound(f"{program} is not on the PATH", hint="Azurite, the Azure emulator, needs Node.js with npm")
    marker = folder / f".azurite-{AZURITE_VERSION}"
    with _installing(folder):
        if not marker.exists():
            command = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--silent"]
            done = subprocess.run(
                [*command, f"azurite@{AZURITE_VERSION}"], capture_output=True, text=True, timeout=600, check=False
            )
            if done.returncode or not main.exists():
                raise Storage(f"npm could not install azurite {AZURITE_VERSION}: {done.stderr[-500:]}", uri=str(folder))
            marker.touch()
    return main


@contextmanager
def _installing(folder: Path) -> Iterator[None]:
    """One installer at a time over all processes; the folder keeps itself out of version control."""
    import fcntl

    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".gitignore").write_text("*\n")
    with open(folder / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _server(command: Sequence[str]) -> Iterator[int]:
    """Run a server on a free port until the block ends; ``{port}`` in the command stands for the port."""
    with tempfile.TemporaryFile() as log:
        process, port = _started(command, log.fileno())
        try:
            yield port
        finally:
            process.kill()
            process.wait()
            if process.stdin is not None:
                process.stdin.close()


def _started(command: Sequence[str], log: int) -> tuple[subprocess.Popen[bytes], int]:
    """A server that answers. A port that somebody took meanwhile is worth another try."""
    for _ in range(3):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        arguments = [part.replace("{port}", str(port)) for part in command]
        process = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=log, stderr=log)
        if _answers(process, port):
            return process, port
        process.kill()
        process.wait()
    os.lseek(log, 0, os.SEEK_SET)
    said = os.read(log, 2000).decode(errors="replace")
    raise Storage(f"{command[0]} did not start a server within {START_UP} s; it said: {said}")


def _answers(process: subprocess.Popen[bytes], port: int) -> bool:
    deadline = time.monotonic() + START_UP
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return process.poll() is None
        except OSError:
            time.sleep(0.05)
    return False


def _signed_container_headers() -> dict[str, str]:
    """Headers that authorise making the container: a shared-key signature over the request's canonical form."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-12-02"}
    canonical = "".join(f"{name}:{value}\n" for name, value in headers.items())
    # The verb, eleven standard headers that are all empty, the x-ms- headers, the resource and the query. The
    # account's name is there twice: as the account, and as the first folder of an emulator's URL.
    text = f"PUT\n{chr(10) * 11}{canonical}/{_ACCOUNT}/{_ACCOUNT}/{_BUCKET}\nrestype:container"
    digest = hmac.new(base64.b64decode(_ACCOUNT_KEY), text.encode(), hashlib.sha256).digest()
    return {**headers, "Authorization": f"SharedKey {_ACCOUNT}:{base64.b64encode(digest).decode()}"}


def _ask(port: int, verb: str, path: str, headers: dict[str, str]) -> None:
    """One request to a server that has just started; Storage unless it succeeds."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_UP)
    try:
        connection.request(verb, path, headers={**headers, "Content-Length": "0"})
        answer = connection.getresponse()
        answer.read()
    finally:
        connection.close()
    if answer.status >= 300:
        raise Storage(f"{verb} answered {answer.status}", uri=f"http://127.0.0.1:{port}{path}")
