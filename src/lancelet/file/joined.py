"""Small files read as one: their bytes lie behind one another, and so do the pages of each of their columns.

A file costs some dozens of microseconds whatever its size. Tables that are written to often have hundreds of small
ones, all alike, and pages that are alike are decoded together (``page_groups``), whichever file they came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lancelet.encodings.values import Bytes
from lancelet.errors import Corrupt
from lancelet.file.data_file import DataFile, Learnt
from lancelet.format.columns import ALIGNMENT, Column, Page

__all__ = ["JoinedFile", "join_files"]


@dataclass(frozen=True)
class JoinedFile(DataFile):
    """Several files that hold the same columns, as one file of all their rows."""

    parts: tuple[DataFile, ...] = ()
    #: Where the bytes of each begin.
    begins: tuple[int, ...] = ()

    def column(self, number: int) -> Column:
        """The pages of all files."""
        found = self.learnt.columns.get(number)
        if found is None:
            first, *others = [part.column(number) for part in self.parts]
            pages = list(first.pages)
            for column, begin in zip(others, self.begins[1:], strict=True):
                for page in column.pages:
                    buffers = tuple([(start + begin, size) for start, size in page.buffers])
                    pages.append(Page(buffers, page.length, page.priority, page.description))
            found = self.learnt.columns[number] = Column(tuple(pages), first.buffers, first.encoding)
        return found


def join_files(files: Sequence[DataFile], contents: Sequence[Bytes | memoryview]) -> JoinedFile:
    """The files, whose contents are given, as one. All must be of one version and hold the same columns.

    What is said of a damaged page is of no use: it lies elsewhere in another file.
    """
    begins, end = [], 0
    for file, content in zip(files, contents, strict=True):
        if len(content) != file.size:
            raise Corrupt(f"the file has {len(content):,} bytes, expected {file.size:,}", uri=file.uri)
        begins.append(end)
        end += -(-file.size // ALIGNMENT) * ALIGNMENT
    whole = np.zeros(end, np.uint8)
    for begin, content in zip(begins, contents, strict=True):
        whole[begin : begin + len(content)] = np.frombuffer(content, np.uint8)
    first = files[0]
    made = object.__new__(JoinedFile)
    made.__dict__.update(
        first.__dict__,
        size=end,
        descriptor=replace(first.descriptor, length=sum(file.num_rows for file in files)),
        view=whole,
        learnt=Learnt(),
        parts=tuple(files),
        begins=tuple(begins),
    )
    return made
