"""Words for people: sizes in units one can read, and tables that line up."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["size_text", "table_text"]


def size_text(size: float) -> str:
    """A number of bytes in the unit that suits it.

    >>> size_text(999), size_text(1536), size_text(8 * 2**20)
    ('999 B', '1.5 KiB', '8.0 MiB')
    """
    if size < 1024:
        return f"{size:g} B"
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024:
            return f"{size:.1f} {unit}"
    return f"{size / 1024:.1f} TiB"


def table_text(header: Sequence[str], rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> str:
    """Rows under a header; columns line up to the right but those numbered in ``left``.

    >>> print(table_text(("name", "rows"), [("a", "1,000"), ("words", "7")]))
    name    rows
    a      1,000
    words      7
    """
    lines = [tuple(header), *map(tuple, rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at in left else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
