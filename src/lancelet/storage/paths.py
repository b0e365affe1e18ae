"""Names: what a URI means, which object paths are allowed, and how errors spell both."""

from __future__ import annotations

import os
import re
from urllib.parse import unquote

from lancelet.errors import InvalidInput

__all__ = ["LOCAL_SCHEMES", "TEMPORARY_PREFIX", "check_path", "join_uri", "local_path", "split_uri"]

#: Objects whose last name starts so are unfinished writes: never listed, never named by callers.
TEMPORARY_PREFIX = ".tmp-"
#: Schemes that mean this machine's file system.
LOCAL_SCHEMES = frozenset({"", "file", "file-object-store"})
# One letter before the colon is a Windows drive, not a scheme.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):(?=/)")


def split_uri(uri: str | os.PathLike[str]) -> tuple[str, str]:
    """The scheme, in lower case, and what follows ``scheme://``; a plain path has the empty scheme.

    >>> split_uri("s3://bucket/a b"), split_uri("/tmp/50%#1"), split_uri("C:/data")
    (('s3', 'bucket/a b'), ('', '/tmp/50%#1'), ('', 'C:/data'))
    """
    text = os.fspath(uri)
    found = _SCHEME.match(text)
    if found is None:
        return "", text
    return found[1].lower(), text[found.end() :].removeprefix("//")


def local_path(uri: str | os.PathLike[str]) -> str:
    """The absolute path that a plain path or a ``file:`` URI names.

    A plain path is taken letter by letter (``~``, ``%`` and ``#`` mean themselves). A ``file:`` URI is
    percent-decoded, and one with a query, a fragment or another machine's name is refused rather than cut.

    >>> local_path("file:///tmp/a%20b"), local_path("/tmp/a%20b")
    ('/tmp/a b', '/tmp/a%20b')
    """
    scheme, rest = split_uri(uri)
    if not rest or "\0" in rest:
        raise InvalidInput(f"{os.fspath(uri)!r} names no directory", uri=os.fspath(uri))
    if scheme == "":
        return os.path.abspath(rest)
    if mark := next((mark for mark in "?#" if mark in rest), None):
        hint = f"write it as %{ord(mark):02X}, or give the plain path"
        raise InvalidInput(f"a file URI cannot hold {mark!r}", uri=os.fspath(uri), hint=hint)
    machine, slash, path = rest.partition("/")
    if machine.lower() not in ("", "localhost") or not slash:
        hint = "write file:///absolute/path, or give the plain path"
        raise InvalidInput(f"the file URI names the machine {machine!r}, expected none", uri=os.fspath(uri), hint=hint)
    return os.path.abspath(unquote("/" + path))


def join_uri(root: str, path: str) -> str:
    """How errors name an object: the root's URI and the path within it.

    >>> join_uri("memory://a", "data/x.lance")
    'memory://a/data/x.lance'
    """
    if not path:
        return root
    return f"{root}{path}" if root.endswith("/") else f"{root}/{path}"


def check_path(root: str, path: str) -> str:
    """``path`` itself if it may name an object below ``root``, else InvalidInput.

    Spaces, ``%``, ``#`` and any other letters are allowed; what could leave the root is not.
    """
    names = path.split("/")
    if "" in names or "." in names or ".." in names or "\0" in path:
        hint = "expected names joined by single slashes, without '.', '..' or a slash at either end"
        raise InvalidInput(f"{path!r} is not an object path", uri=root, hint=hint)
    if names[-1].startswith(TEMPORARY_PREFIX):
        raise InvalidInput(f"{path!r}: names that start with {TEMPORARY_PREFIX!r} are unfinished writes", uri=root)
    return path
