"""Lance tables on Apache Spark through PySpark. Importing this package imports neither PySpark nor a JVM.

lancelet.spark.read(spark, uri, columns=[...], filter="...")     a pruned DataFrame
spark.read.format("lance").load(uri)                             the same table as a source, no registration
lancelet.spark.fetch_blobs(frame, "picture")                     bytes in place of references to blobs
lancelet.spark.upsert_batches(uri, on="id")                      for foreachBatch: each batch merged, once
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lancelet.spark.blob_references import open_blob
    from lancelet.spark.frames import fetch_blobs, read
    from lancelet.spark.java import use_java
    from lancelet.spark.python import use_python
    from lancelet.spark.table_functions import register_functions
    from lancelet.spark.upserts import upsert_batches
    from lancelet.spark.writes import write

__all__ = [
    "fetch_blobs",
    "open_blob",
    "read",
    "register_functions",
    "upsert_batches",
    "use_java",
    "use_python",
    "write",
]

_PLACES = {
    "fetch_blobs": "frames",
    "open_blob": "blob_references",
    "read": "frames",
    "register_functions": "table_functions",
    "upsert_batches": "upserts",
    "use_java": "java",
    "use_python": "python",
    "write": "writes",
}


def __getattr__(name: str) -> object:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{place}"), name)
