"""The types of indexes: how each is called, what it takes, what its versions mean, how it is built and opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from lancelet.encodings.json_paths import parse_json_path
from lancelet.errors import InvalidInput, LanceletError, Unsupported
from lancelet.format.index_details import JsonDetails, parse_json_details
from lancelet.format.indexes import IndexDetails
from lancelet.index.answers import Domain, OpenIndex, Skipped
from lancelet.index.building import Built, Target
from lancelet.index.files import IndexFiles
from lancelet.index.merging import Part
from lancelet.index.order import orderable
from lancelet.index.scalar.bitmap import build as bitmap
from lancelet.index.scalar.bitmap.merge import merge_bitmaps
from lancelet.index.scalar.bitmap.search import BitmapIndex
from lancelet.index.scalar.bloom_filter import build as bloom_filter
from lancelet.index.scalar.bloom_filter.filters import hashable
from lancelet.index.scalar.bloom_filter.merge import like_bloom_filter, merge_bloom_filters
from lancelet.index.scalar.bloom_filter.search import BloomFilterIndex
from lancelet.index.scalar.btree import build as btree
from lancelet.index.scalar.btree.merge import like_btree, merge_btrees
from lancelet.index.scalar.btree.search import BTreeIndex
from lancelet.index.scalar.json import build as json
from lancelet.index.scalar.json.search import JsonIndex
from lancelet.index.scalar.json.target import TARGETS
from lancelet.index.scalar.label_list import build as label_list
from lancelet.index.scalar.label_list.merge import merge_label_lists
from lancelet.index.scalar.label_list.search import LabelListIndex
from lancelet.index.scalar.ngram import build as ngram
from lancelet.index.scalar.ngram.merge import merge_ngrams
from lancelet.index.scalar.ngram.search import NgramIndex
from lancelet.index.scalar.rtree import build as rtree
from lancelet.index.scalar.rtree.boxes import is_geometry
from lancelet.index.scalar.rtree.merge import like_rtree, merge_rtrees
from lancelet.index.scalar.rtree.search import RTreeIndex
from lancelet.index.scalar.zonemap import build as zonemap
from lancelet.index.scalar.zonemap.merge import like_zonemap, merge_zonemaps
from lancelet.index.scalar.zonemap.search import ZoneMapIndex

__all__ = ["KINDS", "IndexKind", "Parameters", "kind_named", "kind_of"]

#: What a user asks for besides the type.
Parameters: TypeAlias = Mapping[str, object]
Rows: TypeAlias = Iterable[pa.RecordBatch]
Parts: TypeAlias = Sequence[Part]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexKind:
    """One type of index."""

    #: As users name it, and as it is described to them.
    name: str
    label: str
    type_url: str
    #: Whether columns of a type can be indexed, and in words what is taken.
    takes: Callable[[pa.DataType], bool]
    taken: str
    #: Given the files, the type of the column and how rows are named.
    open: Callable[[IndexFiles, pa.DataType, Domain, IndexDetails], OpenIndex | Skipped]
    #: Given rows in the order of the table, the type of the values and where to write.
    build: Callable[[Rows, pa.DataType, Target, Parameters], Built]
    #: Given segments, new rows, the type of the values and where to write: one segment of all that.
    merge: Callable[[Parts, Rows, pa.DataType, Target, Parameters], Built]
    #: The newest version that is known, and the first whose rows are addresses even where there are stable ids.
    newest: int
    by_address: int
    #: Whether what is built now calls rows by address where there are stable ids.
    builds_by_address: bool = False
    #: Parameters that building takes, and those with which a segment was built.
    parameters: tuple[str, ...] = ()
    like: Callable[[Part], dict[str, object]] = lambda _: {}

    def domain(self, version: int, *, stable_row_ids: bool) -> Domain:
        """How a segment of a version calls its rows."""
        return Domain.ROW_IDS if stable_row_ids and version < self.by_address else Domain.ADDRESSES

    def check(self, column: str, kind: pa.DataType, parameters: Parameters) -> None:
        """Raise where a column, or a parameter, is not what the type takes."""
        if not self.takes(kind):
            raise Unsupported(f"a {self.name} index is over {self.taken}, the column is {kind}", column=column)
        unknown = sorted(set(parameters) - set(self.parameters))
        if unknown:
            known = ", ".join(self.parameters) or "it has none"
            raise InvalidInput(f"a {self.name} index has no parameter {unknown[0]!r}", hint=f"parameters are: {known}")


_ORDERED = "numbers, booleans, strings, bytes, decimals, dates and times"

_ALL = (
    IndexKind(
        name="BTREE",
        label="BTree",
        type_url=btree.TYPE_URL,
        takes=orderable,
        taken=_ORDERED,
        open=lambda files, kind, domain, _: BTreeIndex(files, kind, domain),
        build=lambda rows, kind, target, parameters: btree.build_btree(rows, kind, target, parameters),
        merge=merge_btrees,
        newest=1,
        by_address=1,
        builds_by_address=True,
        parameters=("zone_size",),
        like=like_btree,
    ),
    IndexKind(
        name="BITMAP",
        label="Bitmap",
        type_url=bitmap.TYPE_URL,
        takes=orderable,
        taken=_ORDERED,
        open=lambda files, kind, domain, _: BitmapIndex(files, kind, domain),
        build=lambda rows, kind, target, _: bitmap.build_bitmap(rows, kind, target),
        merge=lambda parts, rows, kind, target, _: merge_bitmaps(parts, rows, kind, target),
        newest=1,
        by_address=1,
    ),
    IndexKind(
        name="LABEL_LIST",
        label="LabelList",
        type_url=label_list.TYPE_URL,
        takes=label_list.is_labels,
        taken="lists of numbers, booleans, strings, bytes, decimals, dates or times",
        open=lambda files, kind, domain, _: LabelListIndex(files, kind, domain),
        build=lambda rows, kind, target, _: label_list.build_label_list(rows, kind, target),
        merge=lambda parts, rows, kind, target, _: merge_label_lists(parts, rows, kind, target),
        newest=2,
        by_address=2,
    ),
    IndexKind(
        name="NGRAM",
        label="NGram",
        type_url=ngram.TYPE_URL,
        takes=ngram.is_text,
        taken="strings",
        open=lambda files, _, domain, __: NgramIndex(files, domain),
        build=lambda rows, _, target, __: ngram.build_ngram(rows, target),
        merge=lambda parts, rows, _, target, __: merge_ngrams(parts, rows, target),
        newest=0,
        by_address=1,
    ),
    IndexKind(
        name="ZONEMAP",
        label="ZoneMap",
        type_url=zonemap.TYPE_URL,
        takes=orderable,
        taken=_ORDERED,
        open=lambda files, kind, _, __: ZoneMapIndex(files, kind),
        build=lambda rows, kind, target, parameters: zonemap.build_zonemap(rows, kind, target, parameters),
        merge=merge_zonemaps,
        newest=0,
        by_address=0,
        builds_by_address=True,
        parameters=("rows_per_zone",),
        like=like_zonemap,
    ),
    IndexKind(
        name="BLOOMFILTER",
        label="BloomFilter",
        type_url=bloom_filter.TYPE_URL,
        takes=hashable,
        taken="numbers but for float16 and decimals, strings, bytes, dates, times and timestamps",
        open=lambda files, kind, _, __: BloomFilterIndex(files, kind),
        build=lambda rows, _, target, parameters: bloom_filter.build_bloom_filter(rows, target, parameters),
        merge=lambda parts, rows, _, target, parameters: merge_bloom_filters(parts, rows, target, parameters),
        newest=0,
        by_address=0,
        builds_by_address=True,
        parameters=("number_of_items", "probability"),
        like=like_bloom_filter,
    ),
    IndexKind(
        name="RTREE",
        label="RTree",
        type_url=rtree.TYPE_URL,
        takes=is_geometry,
        taken="geometries in GeoArrow's layouts, or points as well-known binary",
        open=lambda files, _, domain, __: RTreeIndex(files, domain),
        build=lambda rows, _, target, parameters: rtree.build_rtree(rows, target, parameters),
        merge=lambda parts, rows, _, target, parameters: merge_rtrees(parts, rows, target, parameters),
        newest=0,
        by_address=1,
        parameters=("page_size",),
        like=like_rtree,
    ),
    IndexKind(
        name="JSON",
        label="Json",
        type_url=json.TYPE_URL,
        takes=json.takes_documents,
        taken="JSON documents, or bytes that are JSONB",
        open=lambda files, _, domain, details: _open_json(files, domain, details),
        build=lambda rows, _, target, parameters: json.build_json(rows, target, parameters, kind_named),
        merge=lambda parts, rows, _, target, __: json.merge_jsons(parts, rows, target, _target_of_json),
        newest=0,
        by_address=1,
        parameters=("path", "target_index_type", "target_index_parameters", "target_data_type"),
        like=lambda part: json.like_json(part, _target_of_json),
    ),
)

#: By the name that users give.
KINDS: dict[str, IndexKind] = {kind.name: kind for kind in _ALL}
# Type URLs are compared without regard to case.
_BY_URL = {kind.type_url.rpartition(".")[2].lower(): kind for kind in _ALL}


def kind_named(name: str) -> IndexKind:
    """The type of a name, in letters of any case; InvalidInput with those there are.

    >>> kind_named("btree").label
    'BTree'
    """
    found = KINDS.get(name.upper())
    if found is None:
        raise InvalidInput(f"there is no index type {name!r}", hint=f"types are: {', '.join(KINDS)}")
    return found


def kind_of(details: IndexDetails) -> IndexKind | None:
    """The type that the details of an index belong to; None if it is not known.

    >>> kind_of(IndexDetails("/lance.table.BITMAPIndexDetails")).name
    'BITMAP'
    """
    return _BY_URL.get(details.kind.lower())


def _target_of_json(details: JsonDetails) -> IndexKind:
    found = kind_of(details.target)
    if found is None or found.name not in TARGETS:
        raise Unsupported(f"a JSON index of type {details.target.kind} is not known to this release")
    return found


def _open_json(files: IndexFiles, domain: Domain, details: IndexDetails) -> OpenIndex | Skipped:
    """The index; Skipped where its type, or its path, is not known, or nobody can tell what it calls rows."""
    try:
        parsed = parse_json_details(details.value)
        target = _target_of_json(parsed)
        steps = parse_json_path(parsed.path)
    except LanceletError as error:
        return Skipped(f"a JSON index is not searched: {error.message}")
    if domain is Domain.ROW_IDS and target.builds_by_address:
        return Skipped(f"a JSON index of type {target.name} does not say whether it has addresses or stable row ids")

    def inner(kind: pa.DataType) -> OpenIndex:
        found = target.open(files, kind, domain, parsed.target)
        if isinstance(found, Skipped):
            raise Unsupported(found.reason)
        return found

    return JsonIndex(files, steps, parsed, target.name, inner)
