"""A daemon of Spark's Python workers that has lancelet imported: workers are forked from it, and need not import it.

Set ``spark.python.daemon.module`` to ``lancelet.spark.daemon`` for the session. Each new worker is then at work half a
second of processor time sooner. It is for clusters whose Pythons all have lancelet: without it no worker starts.

Only modules are loaded here: nothing is opened and no thread of Python is started, because neither outlives a fork.
PyArrow and NumPy each start a thread when they are imported, and each starts it anew in a process that was forked.
"""

from __future__ import annotations

from importlib import import_module

__all__ = ["preload"]

#: What workers need: of Spark to take and give batches, of lancelet to read and write.
_NEEDED = ("pyarrow", "pyspark.worker", "lancelet.spark.source", "lancelet.spark.sink", "lancelet.spark.changing")


def preload() -> None:
    """Import what workers need."""
    for name in _NEEDED:
        import_module(name)


if __name__ == "__main__":
    preload()
    # Asks for the module of its workers when it is imported.
    import_module("pyspark.daemon").manager()
