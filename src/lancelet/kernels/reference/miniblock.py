"""Mini-block pages: the words that describe chunks, the headers of chunks, and the assembly of both.

chunk word   u16 (2.1) or u32 (2.2): low 4 bits log2 of the number of values (0 in the last chunk, which has the
             rest), other bits size / 8 - 1
chunk        u16 number of levels, u16 size of the repetition levels if any, u16 size of the definition levels if any,
             u16 (2.1) or u32 (2.2) size of each value buffer, then the buffers in that order; the header and each
             buffer are padded with 0xFE to a multiple of 8 bytes
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import Corrupt, InvalidInput
from lancelet.kernels import refuse
from lancelet.kernels.refuse_pages import bad_chunk, check_buffer_count, chunk_too_large, wrong_counts

__all__ = ["assemble", "chunk_headers", "chunk_table"]

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]
Pieces = tuple[Bytes, Places, Places]

MOST_VALUES = 32768


def chunk_table(words: Bytes, large: bool, num_items: int, data_size: int) -> tuple[Places, Places, Places]:
    """Where each chunk starts, its size, and how many values it has; all are checked to add up.

    >>> starts, sizes, counts = chunk_table(np.array([0x1A, 0x00, 0x20, 0x00], np.uint8), False, 1100, 40)
    >>> starts.tolist(), sizes.tolist(), counts.tolist()
    ([0, 16], [16, 24], [1024, 76])
    """
    width = 4 if large else 2
    if len(words) % width or (len(words) == 0) != (num_items == 0):
        raise Corrupt(f"page of {num_items} values has {len(words)} bytes of chunk words of {width} bytes each")
    table = words.view(f"<u{width}").astype(np.int64)
    sizes = ((table >> 4) + 1) * 8
    logs = table & 15
    counts = np.left_shift(1, logs)
    if len(counts):
        rest = num_items - int(counts[:-1].sum())
        if not 0 < rest <= MOST_VALUES or (logs[-1] and counts[-1] != rest):
            raise wrong_counts(len(counts), num_items)
        counts[-1] = rest
    if int(sizes.sum()) != data_size:
        raise refuse.wrong_total("the chunks' sizes", found=int(sizes.sum()), expected=data_size)
    return np.cumsum(sizes) - sizes, sizes, counts


def chunk_headers(
    data: Bytes, starts: Places, sizes: Places, has_rep: bool, has_def: bool, num_buffers: int, large: bool
) -> tuple[Places, Places, Places]:
    """Read the headers of chunks: number of levels, and where in ``data`` each buffer starts and its size.

    The last two have a row per chunk and a column per buffer: repetition, definition, then the value buffers.
    """
    refuse.other_length("sizes", len(sizes), len(starts))
    check_buffer_count(num_buffers)
    levels = has_rep + has_def
    num_levels = np.zeros(len(starts), dtype=np.int64)
    buffer_starts = np.zeros((len(starts), levels + num_buffers), dtype=np.int64)
    buffer_sizes = np.zeros((len(starts), levels + num_buffers), dtype=np.int64)
    for i, (start, size) in enumerate(zip(starts.tolist(), sizes.tolist(), strict=True)):
        num_levels[i] = read_header(
            data, i, start, size, levels, large, buffer_starts=buffer_starts[i], buffer_sizes=buffer_sizes[i]
        )
    return num_levels, buffer_starts, buffer_sizes


def read_header(
    data: Bytes,
    chunk: int,
    start: int,
    size: int,
    levels: int,
    large: bool,
    *,
    buffer_starts: Places,
    buffer_sizes: Places,
) -> int:
    """The number of levels of one chunk; fills in where its buffers start and their sizes."""
    width = 4 if large else 2
    header = (2 + 2 * levels + width * (len(buffer_starts) - levels) + 7) // 8 * 8
    if size < 0 or start < 0 or start > len(data) - size:
        raise refuse.range_outside("chunk", chunk, start=start, size=size, have=len(data))
    if size < header:
        raise bad_chunk(chunk, size)
    words = data[start : start + header].tobytes()
    at, place = 2, header
    for k in range(len(buffer_starts)):
        step = 2 if k < levels else width
        length = int.from_bytes(words[at : at + step], "little")
        if length > size - place:
            raise bad_chunk(chunk, size)
        buffer_starts[k], buffer_sizes[k] = start + place, length
        at, place = at + step, place + (length + 7) // 8 * 8
    return int.from_bytes(words[:2], "little")


def assemble(
    levels: Sequence[Pieces], values: Sequence[Pieces], num_levels: Places, logs: NDArray[np.uint8], large: bool
) -> tuple[Bytes, Bytes]:
    """Write chunk words and chunks. A buffer is given as the bytes of all chunks, where each chunk's start, and sizes.

    ``levels`` has the buffers of repetition and definition levels, as far as there are any; ``logs`` the log2 of each
    chunk's number of values, 0 in the last.

    >>> piece = (np.array([1, 2, 3], np.uint8), np.array([0]), np.array([3]))
    >>> words, chunks = assemble([], [piece], np.array([0]), np.array([0], np.uint8), False)
    >>> words.tobytes().hex(), chunks.tobytes().hex()
    ('1000', '00000300fefefefe010203fefefefefe')
    """
    pieces = [*levels, *values]
    for _, starts, sizes in pieces:
        refuse.other_length("starts", len(starts), len(logs))
        refuse.other_length("sizes", len(sizes), len(logs))
    refuse.other_length("num_levels", len(num_levels), len(logs))
    width = 4 if large else 2
    most = (1 << 31) if large else 32768
    words, chunks = [], []
    for i, (log, count) in enumerate(zip(logs.tolist(), num_levels.tolist(), strict=True)):
        if log > 15 or not 0 <= count <= 0xFFFF:
            raise InvalidInput(f"chunk {i} has {count} levels and 2**{log} values, expected at most 65535 and 2**15")
        header = count.to_bytes(2, "little")
        parts = []
        for k, (data, starts, sizes) in enumerate(pieces):
            start, size = int(starts[i]), int(sizes[i])
            if size < 0 or start < 0 or start > len(data) - size:
                raise refuse.range_outside("buffer of chunk", i, start=start, size=size, have=len(data))
            step = 2 if k < len(levels) else width
            if size >= 1 << 8 * step:
                raise chunk_too_large(i, size, (1 << 8 * step) - 1)
            header += size.to_bytes(step, "little")
            parts.append(_padded(data[start : start + size].tobytes()))
        chunk = b"".join([_padded(header), *parts])
        if len(chunk) > most:
            raise chunk_too_large(i, len(chunk), most)
        words.append((len(chunk) // 8 - 1 << 4 | log).to_bytes(width, "little"))
        chunks.append(chunk)
    return np.frombuffer(b"".join(words), np.uint8), np.frombuffer(b"".join(chunks), np.uint8)


def _padded(part: bytes) -> bytes:
    return part + b"\xfe" * (-len(part) % 8)
