"""Numbers of JSON text, as JSONB stores them: the smallest whole type that holds them, else floating point."""

from __future__ import annotations

import math
import struct

from lancelet.kernels.jsonb_layout import FLOAT, INFINITY, INTEGER, MINUS_INFINITY, NAN, NUMBER, UNSIGNED, ZERO

__all__ = ["number_of", "number_payload"]

#: Of hexadecimal digits, no more than these are taken, apart from zeros in front.
_MOST_BITS = 128


def number_of(text: bytes) -> tuple[int, int, int] | None:
    """The entry of a number, its class, and the bits of its value; None for hexadecimal digits that are none.

    The text is decimal, as JSON and Python both have it, or begins with a sign and 0x.

    >>> number_of(b"-5"), number_of(b"1e999")
    ((536870914, 64, 18446744073709551611), (536870913, 32, 0))
    """
    digits = text.lstrip(b"+-").lower()
    if digits.startswith(b"0x"):
        value = _hexadecimal(digits[2:])
        if value is None:
            return None
        return _entry(-value if text.startswith(b"-") else value)
    if digits.rstrip(b".").isdigit():
        # No more digits are converted than fit 64 bits: longer ones have no whole form.
        significant = digits.rstrip(b".").lstrip(b"0") or b"0"
        if len(significant) <= 20:
            return _entry(int(significant) * (-1 if text.startswith(b"-") else 1))
    return _entry(float(text))


def _hexadecimal(digits: bytes) -> int | float | None:
    whole, point, part = digits.partition(b".")
    if not whole or (point and not part) or b"." in part:
        return None
    value, fraction = int(whole, 16), int(part or b"0", 16)
    if max(value, fraction) >> _MOST_BITS:
        return None
    if not point:
        return value
    return float(value) + (math.ldexp(float(fraction), -4 * len(part)) if len(part) < 256 else 0.0)


def _entry(value: float) -> tuple[int, int, int]:
    if isinstance(value, int):
        if value == 0:
            return NUMBER | 1, ZERO, 0
        reach, kind = (value, UNSIGNED) if value > 0 else (-value * 2 - 1, INTEGER)
        if reach < 2**64:
            width = next(width for width in (1, 2, 4, 8) if reach >> 8 * width == 0)
            return NUMBER | width + 1, kind, value % 2**64
        value = float(value)
    if math.isnan(value):
        return NUMBER | 1, NAN, 0
    if math.isinf(value):
        return NUMBER | 1, INFINITY if value > 0 else MINUS_INFINITY, 0
    return NUMBER | 9, FLOAT, int.from_bytes(struct.pack(">d", value), "big")


def number_payload(entry: int, kind: int, bits: int) -> bytes:
    """The bytes of a number.

    >>> number_payload(*number_of(b"258"))
    b'P\\x01\\x02'
    """
    width = (entry & 0x0FFFFFFF) - 1
    return bytes([kind]) + (bits & (1 << 8 * width) - 1).to_bytes(width, "big")
