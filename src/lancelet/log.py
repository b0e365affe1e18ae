"""Logging: what happens, as events tell it, written to a logger of Python's."""

from __future__ import annotations

import logging
import os
from contextlib import ExitStack

from lancelet.events import Event, subscribe

__all__ = ["ENV_NAME_PYLANCE_LOGGING_LEVEL", "LOGGER", "get_log_level", "get_python_log_level", "set_logger"]

#: The environment variable that says how much is logged.
ENV_NAME_PYLANCE_LOGGING_LEVEL = "LANCE_LOG"
_FORMAT = "%(asctime)s %(name)s [%(levelname)s] %(filename)s:%(lineno)d %(funcName)s : %(message)s"
_TRACE = "trace"
# One listener at a time: setting another logger replaces it.
_listening = ExitStack()


def get_log_level() -> str:
    """The level that the environment variable ``LANCE_LOG`` asks for; ``INFO`` if it says nothing.

    >>> get_log_level() in logging.getLevelNamesMapping()
    True
    """
    text = os.environ.get(ENV_NAME_PYLANCE_LOGGING_LEVEL, "").upper()
    words = [word for word in text.split(",") if word and "=" not in word]
    return get_python_log_level(words[0]) if words else "INFO"


def get_python_log_level(rust_log_level: str) -> str:
    """The level of Python's logging that a level of Rust's means: the same, but for the finest.

    >>> get_python_log_level("trace"), get_python_log_level("WARNING")
    ('DEBUG', 'WARNING')
    """
    return "DEBUG" if rust_log_level.lower() == _TRACE else rust_log_level


#: The logger that :func:`set_logger` makes known, once it was called.
LOGGER = logging.getLogger("pylance")


def set_logger(
    file_path: str | None = "pylance.log",
    name: str = "pylance",
    level: int | str = logging.INFO,
    format_string: str | None = None,
    log_handler: logging.Handler | None = None,
) -> None:
    """Write what happens to a file, or to a handler, by the logger of a name; events of progress on level DEBUG.

    >>> import io
    >>> from lancelet.events import emit
    >>> text = io.StringIO()
    >>> set_logger(name="example", format_string="%(message)s", log_handler=logging.StreamHandler(text))
    >>> emit("example.happened", rows=3)
    >>> text.getvalue()
    'example.happened rows=3\\n'
    """
    global LOGGER
    handler = log_handler or logging.FileHandler(file_path or os.devnull)
    handler.setLevel(level)
    handler.setFormatter(logging.Formatter(format_string or _FORMAT))
    LOGGER = logging.getLogger(name)
    LOGGER.setLevel(level)
    LOGGER.addHandler(handler)
    _listening.close()
    _listening.enter_context(subscribe(_write))


def _write(event: Event) -> None:
    level = logging.DEBUG if event.name.endswith(".progress") else logging.INFO
    if event.name.endswith((".error", ".failed")):
        level = logging.WARNING
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, " ".join([event.name, *(f"{key}={value}" for key, value in event.facts.items())]))
