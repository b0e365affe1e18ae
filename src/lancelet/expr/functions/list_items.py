"""What the list functions share: binding lists and items to one type, items beside their lists, items as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput, Unsupported
from lancelet.expr.bits import true_where
from lancelet.expr.functions.define import Datum, cast_to
from lancelet.expr.functions.equality import alike
from lancelet.expr.list_building import item_places
from lancelet.expr.tree import Expr, Literal
from lancelet.expr.types import common_type, is_list, is_nested, plain
from lancelet.expr.vectors import Bools, column, list_spans, made_list, nulls_of, raw_values

__all__ = [
    "Items",
    "as_list",
    "bound_lists",
    "equal_items",
    "items_of",
    "list_and_item",
    "list_of",
    "listed",
    "numbered",
    "sort_ranks",
]

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Items:
    """The items of some lists, one list after another."""

    values: pa.Array
    #: How many each list has; none where it is null.
    lengths: Int64s
    #: Where lists are null; None if nowhere.
    nulls: Bools | None

    @property
    def owners(self) -> Int64s:
        """Of each item which list it is in."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def begins(self) -> Int64s:
        """Of each list how many items are before it."""
        return np.asarray(np.cumsum(self.lengths) - self.lengths)

    @property
    def valid(self) -> Bools | None:
        """Where lists are not null."""
        return None if self.nulls is None else ~self.nulls


def items_of(lists: pa.Array) -> Items:
    """The items of lists, without what is between them.

    >>> items_of(pa.array([[1, 2], None, [3]])).values.to_pylist()
    [1, 2, 3]
    """
    starts, lengths, items = list_spans(lists)
    total = int(lengths.sum())
    if len(starts) and np.all(starts[1:] == starts[:-1] + lengths[:-1]):
        values = items.slice(int(starts[0]), total)
    else:
        values = items.take(pa.array(item_places(starts, lengths)))
    return Items(values, lengths, nulls_of(lists))


def listed(lengths: Int64s, values: pa.Array, valid: Bools | None, kind: pa.DataType) -> pa.Array:
    """Lists of so many items each, as a type."""
    made = made_list(lengths, values.cast(kind.value_type) if values.type != kind.value_type else values, valid)
    return made if made.type == kind else made.cast(kind)


def list_of(item: pa.DataType, *given: pa.DataType) -> pa.DataType:
    """The type of lists of some items: large where one of those given is."""
    field = pa.field("item", item)
    return pa.large_list(field) if any(pat.is_large_list(plain(kind)) for kind in given) else pa.list_(field)


def as_list(name: str, value: Expr, place: int) -> Expr:
    """An argument that must be a list; a null of no type is one of nothing."""
    kind = plain(value.type)
    if pat.is_null(kind):
        return Literal(pa.scalar(None, pa.list_(pa.null())))
    if not is_list(kind):
        raise InvalidInput(f"{name} takes a list as argument {place}, found {value.type}")
    return cast_to(value, kind)


def list_and_item(name: str, value: Expr, *items: Expr, widen: bool = False) -> tuple[Expr, list[Expr], pa.DataType]:
    """A list and values to compare or put in, as one type of items; ``widen`` gives the list that type as well."""
    bound = as_list(name, value, 1)
    own = plain(plain(bound.type).value_type)
    kind = own
    for item in items:
        wider = common_type(kind, item.type)
        if wider is None:
            raise InvalidInput(f"{name}: {item.type} is no item of {value.type}", hint="cast one of them")
        kind = wider
    lists = list_of(kind, bound.type)
    if kind != own or widen:
        bound = cast_to(bound, lists)
    return bound, [cast_to(item, kind) for item in items], lists


def bound_lists(name: str, arguments: Sequence[Expr]) -> tuple[list[Expr], pa.DataType]:
    """Some lists as lists of one type of items."""
    bound = [as_list(name, value, place + 1) for place, value in enumerate(arguments)]
    kind = plain(plain(bound[0].type).value_type)
    for value in bound[1:]:
        wider = common_type(kind, plain(value.type).value_type)
        if wider is None:
            raise InvalidInput(f"{name}: items of {bound[0].type} and {value.type} do not go together")
        kind = wider
    lists = list_of(kind, *(value.type for value in bound))
    return [cast_to(value, lists) for value in bound], lists


def equal_items(items: Items, wanted: Datum, rows: int) -> Bools:
    """Whether each item is the same as the value wanted of its list; null is the same as null."""
    kind = items.values.type
    if isinstance(wanted, pa.Scalar) and wanted.is_valid and not (is_nested(kind) or pat.is_floating(kind)):
        return true_where(pc.equal(items.values, wanted), len(items.values))
    others = column(wanted, rows).take(pa.array(items.owners))
    return true_where(alike(items.values, others), len(items.values))


def numbered(*values: pa.Array) -> list[Int64s]:
    """Numbers that are equal for equal values across some arrays, and 0 for null."""
    whole = pa.concat_arrays(values)
    if is_nested(whole.type):
        raise Unsupported(f"items of {whole.type} are told apart, which is offered for values that hold no others")
    if pat.is_floating(whole.type):
        wide = whole.cast(pa.float64()) if not pat.is_float16(whole.type) else whole.cast(pa.float32())
        # Both zeros are one value.
        whole = pc.add(wide, pa.scalar(0.0, wide.type))
    codes = raw_values(pc.fill_null(whole.dictionary_encode().indices, -1)).astype(np.int64) + 1
    bounds = np.cumsum([len(each) for each in values])[:-1]
    return [np.asarray(part) for part in np.split(codes, bounds)]


def sort_ranks(values: pa.Array) -> Int64s:
    """Numbers in the order of the values, equal for equal ones, and 0 for null; not-a-number is the last."""
    if is_nested(values.type):
        raise Unsupported(f"items of {values.type} are put in order: nested values have none")
    narrow = values.cast(pa.float32()) if pat.is_float16(values.type) else values
    # Behind all values come not-a-number and then nulls.
    made = raw_values(pc.rank(narrow, sort_keys="ascending", tiebreaker="dense")).astype(np.int64)
    nulls = nulls_of(narrow)
    return made if nulls is None else np.where(nulls, 0, made)
