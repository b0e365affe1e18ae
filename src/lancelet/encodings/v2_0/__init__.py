"""Array encodings of file version 2.0: one file for each, from stored bytes to values and back."""
