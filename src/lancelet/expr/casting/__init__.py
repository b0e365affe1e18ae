"""Casts: values of one type as values of another, null where they are none, in whole columns."""

from lancelet.expr.casting.convert import can_convert, converted

__all__ = ["can_convert", "converted"]
