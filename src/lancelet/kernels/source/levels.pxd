# What levels.py takes from C: one instruction that no loop over bits comes near.

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define lancelet_trailing_zeros(word) __builtin_ctzll(word)
    #else
    static int lancelet_trailing_zeros(unsigned long long word) {
        int zeros = 0;
        while (!(word & 1)) { word >>= 1; zeros++; }
        return zeros;
    }
    #endif
    """
    int trailing_zeros "lancelet_trailing_zeros" (unsigned long long word) nogil
