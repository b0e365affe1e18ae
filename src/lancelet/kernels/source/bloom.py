"""Split-block Bloom filters, compiled."""

import cython

from lancelet.kernels import refuse
from lancelet.kernels.reference import bloom as twin

SALTS = twin.SALTS
block_of = twin.block_of
bits_of = twin.bits_of


@cython.cfunc
def _add(
    hashes: cython.const[cython.ulonglong][::1],
    salts: cython.const[cython.uint][::1],
    words: cython.uint[::1],
):
    i: cython.Py_ssize_t
    k: cython.Py_ssize_t
    block: cython.ulonglong
    blocks: cython.ulonglong = words.shape[0] // 8
    lower: cython.uint
    with cython.nogil:
        for i in range(hashes.shape[0]):
            block = ((hashes[i] >> 32) * blocks) >> 32
            lower = cython.cast(cython.uint, hashes[i])
            for k in range(8):
                words[8 * block + k] |= cython.cast(cython.uint, 1) << ((lower * salts[k]) >> 27)


def add_hashes(hashes, words) -> None:
    """See the twin."""
    refuse.no_blocks(len(words), 8)
    _add(hashes, SALTS, words)
