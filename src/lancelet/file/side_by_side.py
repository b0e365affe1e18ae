"""Single rows of large values that lie side by side in mapped pages: gathered from all pages by one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from lancelet.encodings import full_zip
from lancelet.encodings.chunks import Ints
from lancelet.encodings.values import Bytes
from lancelet.file.requests import PageRequest
from lancelet.format.layouts import FullZipLayout
from lancelet.kernels import gather

__all__ = ["gathered"]


# More bytes than this are worth the threads that share pages out.
_MOST_BYTES = 2**20


def gathered(view: Bytes, requests: Sequence[PageRequest]) -> pa.Array | None:
    """The rows of all requests as one array.

    None unless all ask for a few single rows of pages that are alike and whose values have no levels between them.
    ``view`` is the whole file.
    """
    layout, path = requests[0].page.layout, requests[0].page.path
    if len(requests) < 2 or requests[0].page.scale != 1 or not isinstance(layout, FullZipLayout):
        return None
    stride = full_zip.stride_without_levels(layout)
    starts = _starts(requests, layout, stride) if stride else None
    if not stride or starts is None or len(starts) * stride > _MOST_BYTES:
        return None
    count = len(starts)
    out = np.empty(count * stride, np.uint8)
    gather.copy_pieces(view, starts, np.full(count, stride, np.int64), out)
    together = replace(layout, num_items=count, num_visible_items=count)
    index = full_zip.FullZipIndex(starts, starts + stride)
    return full_zip.read_rows(together, path, index, out, slice(0, count), whole=False)


def _starts(requests: Sequence[PageRequest], layout: FullZipLayout, stride: int) -> Ints | None:
    """Where in the file the rows lie; None where pages are not alike or not as long as their rows."""
    pattern = _pattern(layout)
    starts = []
    for request in requests:
        page, rows = request.page, request.rows
        if isinstance(rows, slice) or not isinstance(page.layout, FullZipLayout) or len(page.buffers) != 1:
            return None
        start, size = page.buffers[0]
        if size != page.rows * stride or _pattern(page.layout) != pattern:
            return None
        starts.append(rows * stride + start)
    return np.concatenate(starts)


def _pattern(layout: FullZipLayout) -> tuple[object, ...]:
    """What pages that are alike have in common."""
    return layout.values, layout.layers, layout.bits_rep, layout.bits_def, layout.bits_per_value
