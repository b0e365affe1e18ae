# Decimal text to numbers and back, and characters, for the kernels that name this file.

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy


cdef inline uint64_t _product(uint64_t a, uint64_t b, uint64_t* low) noexcept nogil:
    """The high word of a product of 64 by 64 bits."""
    cdef uint64_t mask = 0xFFFFFFFFULL
    cdef uint64_t inner = (a & mask) * (b >> 32)
    cdef uint64_t outer = (a >> 32) * (b & mask)
    cdef uint64_t lowest = (a & mask) * (b & mask)
    cdef uint64_t middle = (lowest >> 32) + (inner & mask) + (outer & mask)
    low[0] = middle << 32 | (lowest & mask)
    return (a >> 32) * (b >> 32) + (inner >> 32) + (outer >> 32) + (middle >> 32)


cdef inline uint64_t _scaled(const uint64_t* power, uint64_t factor) noexcept nogil:
    """The whole part of power * factor / 2**128, its lowest bit set when anything was cut off: rounded to odd."""
    cdef uint64_t low, middle
    cdef uint64_t carried = _product(power[1], factor, &low)
    cdef uint64_t high = _product(power[0], factor, &middle)
    middle += carried
    high += middle < carried
    return high | (middle > 1)


cdef inline uint64_t _shortest(uint64_t bits, const uint64_t* powers, int32_t* exponent) noexcept nogil:
    """The fewest digits that are read as this positive number, of those the closest to it; the Schubfach method.

    All reals of an interval around the number are read as it. The interval is scaled by the power of ten for which it
    holds at least one whole number and at most one multiple of ten. Bounds are four times as large, to be whole.
    `powers` begin with 10**-342, rounded up.
    """
    cdef uint64_t fraction = bits & 0xFFFFFFFFFFFFFULL
    cdef int32_t scale = <int32_t> (bits >> 52)
    # Below a power of two, numbers lie half as far apart as above it.
    cdef bint narrow = fraction == 0 and scale > 1
    if scale:
        fraction |= <uint64_t> 1 << 52
    else:
        scale = 1
    scale -= 1075
    cdef uint64_t odd = fraction & 1
    # The rounded down logarithms: of 2**scale or 3/4 of it to base ten, of 10**-k to base two.
    cdef int32_t k = (scale * 1262611 - (524031 if narrow else 0)) >> 22
    cdef int32_t shift = scale + ((-k * 1741647) >> 19) + 1
    cdef const uint64_t* power = powers + 2 * (342 - k)
    cdef uint64_t lower = _scaled(power, (4 * fraction - 2 + narrow) << shift) + odd
    cdef uint64_t middle = _scaled(power, (4 * fraction) << shift)
    cdef uint64_t upper = _scaled(power, (4 * fraction + 2) << shift) - odd
    cdef uint64_t digits = middle >> 2
    cdef uint64_t tens = digits // 10
    cdef bint below, above
    if digits >= 10:
        below = lower <= 40 * tens
        above = 40 * tens + 40 <= upper
        if below != above:
            exponent[0] = k + 1
            return tens + above
    exponent[0] = k
    below = lower <= 4 * digits
    above = 4 * digits + 4 <= upper
    if below != above:
        return digits + above
    # The nearer one; of two that are as near, the even one.
    return digits + (middle + (digits & 1) > 4 * digits + 2)


cdef inline uint8_t* put_whole(uint8_t* out, uint64_t value) noexcept nogil:
    """Write a whole number; returns the place behind it."""
    cdef uint64_t bound = 10
    cdef int count = 1, at
    while count < 20 and value >= bound:
        bound *= 10
        count += 1
    for at in range(count - 1, -1, -1):
        out[at] = <uint8_t> (48 + value % 10)
        value //= 10
    return out + count


cdef inline uint8_t* put_real(uint8_t* out, uint64_t bits, const uint64_t* powers) noexcept nogil:
    """Write a finite number: plainly from 0.00001 to 1e16, with an exponent outside of that."""
    cdef uint8_t[40] digits
    cdef int32_t exponent, count
    cdef uint64_t value
    cdef double number
    if bits >> 63:
        out[0] = b"-"
        out += 1
        bits &= 0x7FFFFFFFFFFFFFFFULL
    if bits == 0:
        memcpy(out, b"0.0", 3)
        return out + 3
    # Different numbers of at most 15 digits never become the same double, so that if one of them gives this number back,
    # it has the fewest digits as well. A quotient of exact numbers is the double nearest to it.
    memcpy(&number, &bits, 8)
    exponent = -6
    value = <uint64_t> <int64_t> (number * 1e6 + 0.5) if number < 1e9 else 0
    if value == 0 or <double> <int64_t> value / 1e6 != number:
        value = _shortest(bits, powers, &exponent)
    while value % 100000000 == 0:
        value //= 100000000
        exponent += 8
    if value % 10000 == 0:
        value //= 10000
        exponent += 4
    if value % 100 == 0:
        value //= 100
        exponent += 2
    if value % 10 == 0:
        value //= 10
        exponent += 1
    count = <int32_t> (put_whole(digits, value) - digits)
    # From here on the exponent of the first digit.
    exponent += count - 1
    if exponent < -5 or exponent >= 16:
        out[0] = digits[0]
        out += 1
        if count > 1:
            out[0] = b"."
            memcpy(out + 1, digits + 1, count - 1)
            out += count
        out[0] = b"e"
        out[1] = b"-" if exponent < 0 else b"+"
        return put_whole(out + 2, -exponent if exponent < 0 else exponent)
    if exponent < 0:
        memcpy(out, b"0.00000", 7)
        memcpy(out + 1 - exponent, digits, count)
        return out + 1 - exponent + count
    while count < exponent + 2:
        digits[count] = b"0"
        count += 1
    memcpy(out, digits, exponent + 1)
    out[exponent + 1] = b"."
    memcpy(out + exponent + 2, digits + exponent + 1, count - exponent - 1)
    return out + count + 1


cdef inline bint nearest_number(
    uint64_t digits, int64_t exponent, const uint64_t* powers, uint64_t* bits
) noexcept nogil:
    """The bits of the number nearest to digits * 10**exponent; False where 128 bits of the power do not decide.

    `powers` begin with 10**-342, rounded down. A power is too small by less than one in its last place, the product of
    192 bits therefore by less than one in its middle word. What that cannot change is certain; what it could, and all
    numbers that are not normal, are left to the caller.
    """
    cdef uint64_t high, middle, low, carried, half, rest
    cdef int32_t zeros = 0, step = 32, scale
    bits[0] = 0
    if digits == 0:
        return True
    if exponent < -342 or exponent > 308:
        return False
    while step:
        if digits >> (64 - step) == 0:
            digits <<= step
            zeros += step
        step >>= 1
    high = _product(digits, powers[2 * (exponent + 342)], &middle)
    carried = _product(digits, powers[2 * (exponent + 342) + 1], &low)
    middle += carried
    high += middle < carried
    # The exponent of the product's highest bit, with floor(log2(10**exponent)) in it.
    scale = <int32_t> ((exponent * 217706) >> 16) + 63 - zeros
    if high >> 63:
        scale += 1
        half, rest = high >> 10, high & 0x3FF
        if rest == 0x3FF and middle == <uint64_t> -1:
            return False
    else:
        half, rest = high >> 9, high & 0x1FF
        if rest == 0x1FF and middle == <uint64_t> -1:
            return False
    # Of 54 bits the last one says whether the rest comes to a half. Powers from 0 to 55 are exact, and so is a half.
    if half & 1 and rest == 0 and middle == 0 and low == 0:
        if exponent < 0 or exponent > 55:
            return False
        half += half >> 1 & 1
    else:
        half += half & 1
    half >>= 1
    if half >> 53:
        half >>= 1
        scale += 1
    if scale < -1022 or scale > 1023:
        return False
    bits[0] = <uint64_t> (scale + 1023) << 52 | (half & 0xFFFFFFFFFFFFFULL)
    return True


cdef inline int utf8_sequence(const uint8_t* data, int64_t left) noexcept nogil:
    """The bytes of the UTF-8 sequence, of two to four, that begins here; 0 if none does."""
    cdef uint8_t first = data[0], second
    if first < 0xC2 or first > 0xF4 or left < 2:
        return 0
    second = data[1]
    if second & 0xC0 != 0x80:
        return 0
    if first < 0xE0:
        return 2
    if left < 3 or data[2] & 0xC0 != 0x80:
        return 0
    if first < 0xF0:
        return 0 if (first == 0xE0 and second < 0xA0) or (first == 0xED and second >= 0xA0) else 3
    if left < 4 or data[3] & 0xC0 != 0x80:
        return 0
    return 0 if (first == 0xF0 and second < 0x90) or (first == 0xF4 and second >= 0x90) else 4


cdef inline int hexadecimal_digit(uint8_t c) noexcept nogil:
    """The value of a digit, or -1."""
    if 48 <= c <= 57:
        return c - 48
    c |= 32
    return c - 87 if 97 <= c <= 102 else -1


cdef inline uint8_t* put_utf8(uint8_t* out, uint32_t point) noexcept nogil:
    """Write a code point; returns the place behind it."""
    if point < 0x80:
        out[0] = <uint8_t> point
        return out + 1
    if point < 0x800:
        out[0] = <uint8_t> (0xC0 | point >> 6)
    else:
        if point < 0x10000:
            out[0] = <uint8_t> (0xE0 | point >> 12)
        else:
            out[0] = <uint8_t> (0xF0 | point >> 18)
            out += 1
            out[0] = <uint8_t> (0x80 | (point >> 12 & 63))
        out += 1
        out[0] = <uint8_t> (0x80 | (point >> 6 & 63))
    out += 1
    out[0] = <uint8_t> (0x80 | (point & 63))
    return out + 1
