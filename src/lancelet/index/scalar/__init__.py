"""Scalar indexes: one folder for each type."""
