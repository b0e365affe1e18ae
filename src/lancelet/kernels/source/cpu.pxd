# What cpu.py takes from C: the processor's feature bits, and whether the system saves the wide registers.

cdef extern from *:
    """
    #if defined(__x86_64__) && defined(__GNUC__)
    #include <cpuid.h>
    static int lancelet_supports_v3(void) {
        unsigned a, b, c, d, low, high;
        /* leaf 1, ecx: FMA 12, MOVBE 22, OSXSAVE 27, AVX 28, F16C 29 */
        const unsigned first = 1u << 12 | 1u << 22 | 1u << 27 | 1u << 28 | 1u << 29;
        /* leaf 7, ebx: BMI1 3, AVX2 5, BMI2 8 */
        const unsigned seventh = 1u << 3 | 1u << 5 | 1u << 8;
        if (!__get_cpuid(1, &a, &b, &c, &d) || (c & first) != first) return 0;
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        if ((low & 6) != 6) return 0; /* XMM and YMM state */
        if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (b & seventh) != seventh) return 0;
        /* leaf 0x80000001, ecx: LZCNT 5 */
        return __get_cpuid(0x80000001u, &a, &b, &c, &d) && (c >> 5 & 1);
    }
    #else
    static int lancelet_supports_v3(void) { return 0; }
    #endif
    """
    int lancelet_supports_v3() nogil
