"""Adapters to other libraries, each imported where it is used."""
