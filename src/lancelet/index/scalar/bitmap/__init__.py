"""BITMAP: for each value the set of rows that have it, in one file ``bitmap_page_lookup.lance``."""
