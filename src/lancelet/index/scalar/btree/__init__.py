"""BTREE: values in order with their rows, in pages, and the smallest and largest value of each page."""
