"""Kernels in Cython's pure-Python mode; compiled by setup.py, never imported from here."""
