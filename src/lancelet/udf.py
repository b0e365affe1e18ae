"""Functions that compute new columns, as users handle them."""

from lancelet.dataset.udf import BatchUDF, batch_udf, normalize_transform
from lancelet.dataset.udf_checkpoint import BatchUDFCheckpoint

__all__ = ["BatchUDF", "BatchUDFCheckpoint", "batch_udf", "normalize_transform"]
