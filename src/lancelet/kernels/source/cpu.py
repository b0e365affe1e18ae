"""What the processor can do, asked before any kernel that needs it is loaded."""

# lancelet_supports_v3 comes from cpu.pxd.


def supports_x86_64_v3() -> bool:
    """Whether processor and system run code compiled for the x86-64-v3 level (AVX2, BMI2, FMA)."""
    return lancelet_supports_v3() != 0
