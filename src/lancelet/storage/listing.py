"""Listing directories in byte order of whole paths, one directory in memory at a time."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from lancelet.storage.paths import TEMPORARY_PREFIX, join_uri
from lancelet.storage.staging import os_error
from lancelet.storage.store import Entry

__all__ = ["names", "walk"]


def walk(root: str, prefix: str, start_after: str, *, temporary: bool = False) -> Iterator[Entry]:
    """Regular files below ``root`` whose path starts with ``prefix`` and sorts after ``start_after``.

    ``temporary`` lists the unfinished writes instead of the objects. What vanishes while the listing runs is
    passed over; an unreadable directory is an error, not an empty one.
    """
    folder, slash, _ = prefix.rpartition("/")
    if any(name in ("", ".", "..") for name in folder.split("/")) and slash:
        return
    yield from _walk(root, folder + slash, prefix, os.fsencode(start_after), temporary)


def _walk(root: str, folder: str, prefix: str, after: bytes, temporary: bool) -> Iterator[Entry]:
    for key, path, is_folder in _names(root, folder):
        if is_folder:
            # Everything in the folder starts with its key, so the key alone tells whether all of it is skipped.
            if (path.startswith(prefix) or prefix.startswith(path)) and (key > after or after.startswith(key)):
                yield from _walk(root, path, prefix, after, temporary)
        elif path.startswith(prefix) and key > after and path[len(folder) :].startswith(TEMPORARY_PREFIX) == temporary:
            try:
                status = os.stat(join_uri(root, path))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise os_error(error, join_uri(root, path)) from error
            if stat.S_ISREG(status.st_mode):
                yield Entry(path, status.st_size, status.st_mtime)


def _names(root: str, folder: str) -> list[tuple[bytes, str, bool]]:
    """One directory's names as (sort key, path, is a folder); a folder's path and key end in the slash.

    With the slash in its key a folder stands where its files belong: ``a.b`` < ``a/c`` < ``a0``.
    """
    place = join_uri(root, folder.rstrip("/"))
    found: list[tuple[bytes, str, bool]] = []
    try:
        with os.scandir(place) as entries:
            for entry in entries:
                is_folder = entry.is_dir()
                path = f"{folder}{entry.name}/" if is_folder else f"{folder}{entry.name}"
                found.append((os.fsencode(path), path, is_folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise os_error(error, place) from error
    found.sort()
    return found


def names(place: str) -> list[str]:
    """The names in one directory in byte order, unfinished writes left out; none where there is no directory."""
    try:
        found = [name for name in os.listdir(place) if not name.startswith(TEMPORARY_PREFIX)]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise os_error(error, place) from error
    # Surrogates stand for bytes that are no UTF-8; all else sorts as its bytes do.
    found.sort(key=None if all(map(str.isascii, found)) else os.fsencode)
    return found
