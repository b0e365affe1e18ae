"""Kinds of Spark on one machine: a standalone master with two workers, and tests run on a kind that is named."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

__all__ = ["run_tests", "standalone", "stopped"]


def _free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """A master and two workers of one core each, at addresses of their own; the master's URL.

    Java and Python are those that the environment names.
    """
    port = _free_port()
    url = f"spark://127.0.0.1:{port}"
    home = str(Path(pyspark.__file__).parent)
    environment = {
        **os.environ,
        "SPARK_HOME": home,
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_NO_DAEMONIZE": "1",
    }
    deploy = "org.apache.spark.deploy"
    commands = [[f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]]
    for number in (1, 2):
        limits = ["--cores", "1", "--memory", "1g", "--webui-port", "0", "--work-dir", str(folder / f"worker{number}")]
        commands.append([f"{deploy}.worker.Worker", "--host", f"127.0.0.{number}", *limits, url])
    running: list[subprocess.Popen[bytes]] = []
    try:
        for command in commands:
            with open(folder / f"log{len(running)}", "wb") as log:
                # spark-class becomes the JVM, so that it can be ended by its number.
                start = [str(Path(home, "bin/spark-class")), *command]
                running.append(subprocess.Popen(start, env=environment, stdout=log, stderr=log))
            if len(running) == 1:
                _until_heard(folder / "log0", "Successfully started service 'sparkMaster'")
        for number in (1, 2):
            _until_heard(folder / f"log{number}", "Successfully registered with master")
        yield url
    finally:
        for process in reversed(running):
            process.terminate()
        for process in running:
            process.wait(timeout=60)


def _until_heard(log: Path, text: str, seconds: float = 180.0) -> None:
    """Wait until a log says so."""
    until = time.monotonic() + seconds
    while text not in log.read_text(errors="replace"):
        if time.monotonic() > until:
            raise TimeoutError(f"{log} does not say {text!r}:\n{log.read_text(errors='replace')[-3000:]}")
        time.sleep(0.1)


def stopped(session: SparkSession) -> None:
    """End a session, and remove what the executors of a local cluster left beside Spark itself."""
    application = session.sparkContext.applicationId
    session.stop()
    shutil.rmtree(Path(pyspark.__file__).parent / "work" / application, ignore_errors=True)


def run_tests(
    kind: str, folder: Path, tests: Sequence[Path], *, chosen: str = "", python: str = sys.executable
) -> None:
    """Run tests on a kind of Spark, in a process of its own; AssertionError with what it says where some fail.

    ``kind`` is ``connect`` or a master, ``chosen`` an expression over the tests' names, ``python`` the interpreter
    beside which the Spark is that is meant.
    """
    environment = {**os.environ, "LANCELET_TEST_SPARK": kind, "SPARK_LOCAL_DIRS": str(folder / "local")}
    # What was found for this process may be another Spark's.
    environment.pop("SPARK_HOME", None)
    if python != sys.executable:
        environment["PYSPARK_PYTHON"] = python
    options = ["-q", "-p", "no:cacheprovider", "-m", "not long and not timing", "-W", "ignore", "--tb=short"]
    options += ["-k", chosen] if chosen else []
    paths = [f"--basetemp={folder / 'temporary'}", *map(str, tests)]
    command = [python, "-m", "pytest", *options, *paths]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=3600, check=False)
    if done.returncode:
        raise AssertionError(f"on {kind}:\n{done.stdout[-20_000:]}{done.stderr[-4_000:]}")
