"""ZONEMAP: the smallest and largest value of each zone of some thousand rows, in one file ``zonemap.lance``."""
