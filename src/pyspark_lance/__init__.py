"""The module by whose name Spark finds lancelet: it looks for a DefaultSource in every module named ``pyspark_*``.

Spark imports all of them. This one must stay light and must never fail to import, because one that fails hides every
other Python data source. A module without a ``DefaultSource`` is passed over, so none is defined before there is a
source behind it.
"""
