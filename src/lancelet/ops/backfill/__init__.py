"""Backfilling: columns put beside those of each fragment, with values computed from its rows."""
