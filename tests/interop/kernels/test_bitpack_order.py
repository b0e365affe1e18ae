"""Bits are packed in the order that pylance uses: its mini-block chunks unpack here and repack to its bytes."""

from __future__ import annotations

import lance
import numpy as np
import pyarrow as pa
import pytest

from lancelet import kernels
from lancelet.kernels import bitpack

ROWS = 3000
WORD = {"2.1": np.uint16, "2.2": np.uint32}


def chunks_of(path, version):
    """The file's bytes, and start and size of the one value buffer of each chunk of its first page, without levels.

    The page's first buffer begins the file and has a word per chunk; its second, the chunks, begins at byte 64. A chunk
    is: u16 number of levels (0), the size of its value buffer, padding to 8 bytes, that buffer, padding to 8 bytes.
    """
    (file,) = path.glob("data/*.lance")
    data, dtype = np.frombuffer(file.read_bytes(), np.uint8), np.dtype(WORD[version])
    words = data[: 3 * dtype.itemsize].view(dtype)
    begins = 64 + np.concatenate([[0], np.cumsum((words[:-1] >> 4).astype(np.int64) * 8 + 8)])
    sizes = [int(data[begin + 2 : begin + 2 + dtype.itemsize].view(dtype)[0]) for begin in begins]
    return data, begins + 8, np.array(sizes)


@pytest.mark.parametrize("variant", kernels.variants())
@pytest.mark.parametrize("version", ["2.1", "2.2"])
@pytest.mark.parametrize(
    ("dtype", "widths"),
    [(np.uint8, (3, 5, 1)), (np.uint16, (9, 3, 11)), (np.uint32, (7, 31, 20)), (np.uint64, (17, 45, 63))],
)
def test_chunks_written_by_pylance_unpack_and_repack_to_the_same_bytes(tmp_path, variant, version, dtype, widths):
    limits = np.repeat([np.uint64(2**width - 1) for width in widths], 1024)[:ROWS]
    values = (np.random.default_rng(0).integers(0, 2**64, ROWS, np.uint64) & limits).astype(dtype)
    lance.write_dataset(pa.table({"a": values}), tmp_path / "t.lance", data_storage_version=version)
    data, starts, sizes = chunks_of(tmp_path / "t.lance", version)
    size = np.dtype(dtype).itemsize
    assert sizes.tolist() == [size + 128 * width for width in widths], "pylance chose another encoding"

    kernel, out = kernels.load(variant)["bitpack"], np.zeros(ROWS, dtype)
    kernel.unpack_inline(data, starts, sizes, np.array([1024, 1024, ROWS - 2048]), out)
    assert np.array_equal(out, values)
    packed, places = np.zeros(int(sizes.sum()), np.uint8), np.zeros(3, np.int64)
    assert kernel.pack_inline(values, packed, places) == len(packed)
    theirs = np.concatenate([data[start : start + size] for start, size in zip(starts, sizes, strict=True)])
    assert packed.tobytes() == theirs.tobytes()
    assert bitpack.block_widths(values).tolist() == list(widths)
