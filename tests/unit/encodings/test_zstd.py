"""zstd frames: many in one call give what each gives alone, and broken ones are named."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from lancelet.encodings.zstd import decompress_frames
from lancelet.errors import Corrupt

SIZES = [0, 1, 5, 255, 256, 257, 5000, 65_535, 65_536, 65_792, 300_000]


def framed(values: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Frames with gaps between them: data, starts, sizes, lengths of the contents."""
    codec = pa.Codec("zstd")
    frames = [codec.compress(value, asbytes=True) for value in values]
    data = np.frombuffer(b"".join(b"gap" + frame for frame in frames), np.uint8)
    sizes = np.array([len(frame) for frame in frames], np.int64)
    starts = np.cumsum(sizes + 3) - sizes
    return data, starts, sizes, np.array([len(value) for value in values], np.int64)


def values_of(sizes: list[int]) -> list[bytes]:
    draw = np.random.default_rng(0)
    return [draw.integers(0, 5, size).astype(np.uint8).tobytes() for size in sizes]


@pytest.mark.parametrize("sizes", [SIZES, SIZES[:1], SIZES[3:4], SIZES[::-1], [700] * 3000, []])
def test_contents_come_side_by_side(sizes: list[int]) -> None:
    values = values_of(sizes)
    assert decompress_frames(*framed(values)).tobytes() == b"".join(values)


def test_frames_that_do_not_say_their_length_are_read_too() -> None:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(b"streamed" * 100)
    frame = sink.getvalue().to_pybytes()
    data = np.frombuffer(frame * 2, np.uint8)
    size = len(frame)
    found = decompress_frames(data, np.array([0, size]), np.array([size, size]), np.array([800, 800]))
    assert found.tobytes() == b"streamed" * 200


@pytest.mark.parametrize("broken", range(4))
def test_the_broken_frame_is_named(broken: int) -> None:
    data, starts, sizes, lengths = framed(values_of([300, 400, 500, 600]))
    data = data.copy()
    data[starts[broken] + 12] ^= 0xFF
    data[starts[broken]] ^= 1
    with pytest.raises(Corrupt, match=f"compressed buffer {broken} is not a zstd frame"):
        decompress_frames(data, starts, sizes, lengths)


def test_lengths_that_only_come_out_together_are_refused() -> None:
    data, starts, sizes, lengths = framed(values_of([300, 400]))
    with pytest.raises(Corrupt, match="compressed buffer 0"):
        decompress_frames(data, starts, sizes, lengths[::-1].copy())
