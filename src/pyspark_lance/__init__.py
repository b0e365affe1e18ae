"""The module whose name makes Spark find lancelet: Spark imports every ``pyspark_*`` module to look for a DefaultSource.

It must stay light and must never fail to import, because one that fails hides every other Python data source. A module
without a ``DefaultSource`` is passed over, so none is defined before there is a source behind it.
"""
