# Candidates for an FSST symbol table: counted in a hash table, and ranked. For the kernels that name this file.

from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memset


cdef struct Candidate:
    uint64_t value
    uint32_t count
    # 0 in a slot that is free.
    uint32_t length

# Open addressing in as many slots as `shift` leaves of a hash of 64 bits; the slots in use are listed, so that few
# candidates cost little. Rank by rank the best 512, sorted into buckets: where each begins, and ends so far.
cdef struct Candidates:
    Candidate[65536] slots
    uint32_t[65536] used
    uint32_t[512] ranked
    uint32_t[4096] starts
    uint32_t[4096] ends
    # How often each code was used; from 512 on, each byte that needed an escape.
    uint32_t[768] codes
    int size
    int shift


cdef inline void reserve(Candidates* c, int64_t sample_size) noexcept nogil:
    """Slots for all candidates of a sample: each of its bytes makes two at most, and each byte value one."""
    cdef int64_t slots = 1024
    c.shift = 54
    while slots < 65536 and slots < 4 * sample_size:
        slots *= 2
        c.shift -= 1
    c.size = 0
    memset(c.slots, 0, slots * sizeof(Candidate))


cdef inline void forget(Candidates* c) noexcept nogil:
    """Free all slots, and count codes from none again."""
    cdef int k
    for k in range(c.size):
        c.slots[c.used[k]].length = 0
    c.size = 0
    memset(c.codes, 0, sizeof(c.codes))


cdef inline void count(Candidates* c, uint64_t value, uint32_t length, uint32_t weight) noexcept nogil:
    cdef uint64_t factor = 0x9E3779B97F4A7C15ULL
    cdef uint32_t slot = <uint32_t> (((value + length) * factor) >> c.shift)
    cdef uint32_t last = <uint32_t> (0xFFFFFFFFFFFFFFFFULL >> c.shift)
    while c.slots[slot].length != 0:
        if c.slots[slot].value == value and c.slots[slot].length == length:
            c.slots[slot].count += weight
            return
        slot = (slot + 1) & last
    c.slots[slot].value = value
    c.slots[slot].length = length
    c.slots[slot].count = weight
    c.used[c.size] = slot
    c.size += 1


cdef inline bint _better(Candidates* c, uint32_t a, uint32_t b) noexcept nogil:
    """Whether a goes before b: by bytes covered, then length, then value. Never a tie."""
    cdef uint32_t gain_a = c.slots[a].count * c.slots[a].length
    cdef uint32_t gain_b = c.slots[b].count * c.slots[b].length
    if gain_a != gain_b:
        return gain_a > gain_b
    if c.slots[a].length != c.slots[b].length:
        return c.slots[a].length > c.slots[b].length
    return c.slots[a].value < c.slots[b].value


cdef inline int _bucket(Candidate* candidate) noexcept nogil:
    """Candidates of a bucket go before those of every later one: by bytes covered, then by length. All who cover much
    share the first."""
    cdef uint32_t gain = candidate.count * candidate.length
    return 0 if gain > 510 else 8 * (511 - <int> gain) + 8 - <int> candidate.length


cdef inline int rank(Candidates* c, uint32_t least) noexcept nogil:
    """List the best candidates that were counted `least` times, best first; returns how many."""
    cdef int k, i, bucket
    cdef uint32_t slot, here, before = 0
    memset(c.ends, 0, sizeof(c.ends))
    for k in range(c.size):
        if c.slots[c.used[k]].count >= least:
            c.ends[_bucket(&c.slots[c.used[k]])] += 1
    for k in range(4096):
        here = c.ends[k]
        c.starts[k] = c.ends[k] = before
        before = before + here if before + here < 512 else 512
    for k in range(c.size):
        slot = c.used[k]
        if c.slots[slot].count < least:
            continue
        bucket = _bucket(&c.slots[slot])
        i = c.ends[bucket]
        if i < 512:
            c.ends[bucket] += 1
        elif c.starts[bucket] == 512 or not _better(c, slot, c.ranked[511]):
            continue
        else:
            i = 511
        while i > <int> c.starts[bucket] and _better(c, slot, c.ranked[i - 1]):
            c.ranked[i] = c.ranked[i - 1]
            i -= 1
        c.ranked[i] = slot
    return <int> before
