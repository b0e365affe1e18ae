"""RTREE: boxes around geometries in pages of neighbours, boxes around the pages, and the rows without one."""
