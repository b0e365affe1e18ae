"""The kernels in NumPy: the contract that the compiled ones obey, and what runs where none was compiled."""
