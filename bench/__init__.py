"""Side-by-side measurements: ``python -m bench``. Each file with a function ``cases`` is a family, found by itself."""
