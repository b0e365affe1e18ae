"""Fragments: what manifests say of them, reading and rewriting one, writing new ones."""
