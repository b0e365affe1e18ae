"""Lance tables from pip alone."""

from lancelet.errors import LanceletError

__all__ = ["LanceletError", "__version__"]

__version__ = "0.1.0"
