"""Whether strings are UTF-8, compiled."""

import cython

from lancelet.kernels.refuse_pages import check_some_offsets, range_of_value

Offset = cython.fused_type(cython.int, cython.longlong)
# Bytes looked at together: those without a single non-ASCII one are done with at once.
BLOCK = cython.declare(cython.Py_ssize_t, 4096)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _wrong(x: cython.uchar, a: cython.uchar, b: cython.uchar, c: cython.uchar) -> cython.uchar:
    """Not 0 where byte ``x`` may not stand behind ``a``, ``b`` and ``c``, of which ``a`` is nearest."""
    goes_on: cython.uchar = (x & 0xC0) == 0x80
    expected: cython.uchar = (a >= 0xC0) | (b >= 0xE0) | (c >= 0xF0)
    never: cython.uchar = (x >= 0xF5) | ((x & 0xFE) == 0xC0)
    # Forms longer than they need be, surrogates, and what lies beyond the last code point.
    over: cython.uchar = ((a == 0xE0) & (x < 0xA0)) | ((a == 0xED) & (x >= 0xA0))
    far: cython.uchar = ((a == 0xF0) & (x < 0x90)) | ((a == 0xF4) & (x >= 0x90))
    return (goes_on ^ expected) | never | over | far


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_text(p: cython.pointer(cython.const[cython.uchar]), size: cython.Py_ssize_t) -> cython.bint:
    """Whether the bytes are UTF-8, whole characters at both ends."""
    i: cython.Py_ssize_t
    start: cython.Py_ssize_t = 0
    stop: cython.Py_ssize_t
    seen: cython.uchar
    bad: cython.uchar = 0
    before: cython.uchar = 0
    while start < size:
        stop = start + BLOCK if size - start > BLOCK else size
        seen = 0
        for i in range(start, stop):
            seen |= p[i]
        # A character that began in the block before may have to go on in this one.
        if seen & 0x80 or before & 0x80:
            if start == 0:
                for i in range(min(3, stop)):
                    bad |= _wrong(p[i], p[i - 1] if i > 0 else 0, p[i - 2] if i > 1 else 0, 0)
                start = min(3, stop)
            for i in range(start, stop):
                bad |= _wrong(p[i], p[i - 1], p[i - 2], p[i - 3])
            if bad:
                return False
        before = seen
        start = stop
    # A character that starts so near the end has no room for the rest of it.
    cut: cython.bint = (
        (size > 0 and p[size - 1] >= 0xC0) or (size > 1 and p[size - 2] >= 0xE0) or (size > 2 and p[size - 3] >= 0xF0)
    )
    return not cut


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_cut(
    p: cython.pointer(cython.const[cython.uchar]), offsets: cython.const[Offset][::1], end: cython.longlong
) -> cython.bint:
    """Whether any value begins in the middle of a character."""
    i: cython.Py_ssize_t
    cut: cython.bint = False
    for i in range(offsets.shape[0]):
        # Values without bytes may begin where all bytes end.
        cut |= (p[min(offsets[i], end - 1)] & 0xC0) == 0x80 and offsets[i] < end
    return cut


@cython.cfunc
def _find(data: cython.const[cython.uchar][::1], offsets: cython.const[Offset][::1]) -> cython.Py_ssize_t:
    count: cython.Py_ssize_t = offsets.shape[0] - 1
    have: cython.longlong = data.shape[0]
    first: cython.longlong = offsets[0]
    last: cython.longlong = offsets[count]
    i: cython.Py_ssize_t
    fallen: cython.bint = False
    seen: cython.uchar = 0
    if first < 0 or last > have:
        raise range_of_value(0, first, last, have)
    with cython.nogil:
        for i in range(count):
            fallen |= offsets[i + 1] < offsets[i]
    if fallen:
        i = 0
        while offsets[i + 1] >= offsets[i]:
            i += 1
        raise range_of_value(i, offsets[i], offsets[i + 1], have)
    if first == last:
        return -1
    p: cython.pointer(cython.const[cython.uchar]) = cython.address(data[0])
    with cython.nogil:
        for i in range(first, last):
            seen |= p[i]
        if not seen & 0x80:
            return -1
        if _is_text(p + first, last - first) and not _is_cut(p, offsets, last):
            return -1
        for i in range(count):
            if not _is_text(p + offsets[i], offsets[i + 1] - offsets[i]):
                return i
    return -1


def find_invalid(data, offsets) -> int:
    """See the twin."""
    check_some_offsets(offsets)
    if offsets.itemsize == 4:
        return _find[cython.int](data, offsets)
    return _find[cython.longlong](data, offsets)
