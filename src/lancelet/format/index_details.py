"""Details of indexes, type by type: dataclasses for what only indexes of one type say of themselves."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from lancelet.errors import Corrupt
from lancelet.format.indexes import IndexDetails, details_message, read_details
from lancelet.format.preserve import put_unknown, storable, unknown_of
from lancelet.format.protos import index_details_pb2 as wire
from lancelet.format.wire import parse_message, write_message

__all__ = [
    "JsonDetails",
    "JsonType",
    "MinHashDetails",
    "Tokenizer",
    "ZoneMapDetails",
    "parse_json_details",
    "parse_min_hash_details",
    "parse_vector_metric",
    "parse_zone_map_details",
    "write_json_details",
    "write_min_hash_details",
    "write_zone_map_details",
]


@dataclass(frozen=True, slots=True)
class ZoneMapDetails:
    """What a zone map says; None where its writer did not know the field yet."""

    rows_per_zone: int | None = None
    use_seeds: bool | None = None
    has_null_bitmap: bool | None = None
    unknown: bytes = b""


def parse_zone_map_details(data: bytes) -> ZoneMapDetails:
    """The details that a message holds.

    >>> parse_zone_map_details(write_zone_map_details(ZoneMapDetails(8192, False, True))).rows_per_zone
    8192
    """
    message = parse_message(wire.ZoneMap, data, "details of a zone map")
    return ZoneMapDetails(
        message.rows_per_zone if message.HasField("rows_per_zone") else None,
        message.use_seeds if message.HasField("use_seeds") else None,
        message.has_null_bitmap if message.HasField("has_null_bitmap") else None,
        unknown_of(message),
    )


def write_zone_map_details(item: ZoneMapDetails) -> bytes:
    """The message of the details."""
    with storable("details of a zone map"):
        message = wire.ZoneMap(
            rows_per_zone=item.rows_per_zone, use_seeds=item.use_seeds, has_null_bitmap=item.has_null_bitmap
        )
    put_unknown(message, item.unknown)
    return write_message(message)


class JsonType(IntEnum):
    """As what the values at a path of JSON documents are indexed."""

    UNSAID = 0
    BOOLEAN = 1
    INT64 = 2
    FLOAT64 = 3
    STRING = 4
    BINARY = 5


@dataclass(frozen=True, slots=True)
class JsonDetails:
    """An index over what stands at one path of JSON documents."""

    path: str
    target: IndexDetails
    #: A number that this release does not know is kept as it is.
    data_type: int = JsonType.UNSAID
    unknown: bytes = b""


def parse_json_details(data: bytes) -> JsonDetails:
    """The details that a message holds; Corrupt where it does not say of which type the index is."""
    message = parse_message(wire.Json, data, "details of a JSON index")
    if not message.HasField("target_details"):
        raise Corrupt("details of a JSON index do not say of which type it is")
    return JsonDetails(
        message.path, read_details(message.target_details), message.target_data_type, unknown_of(message)
    )


def write_json_details(item: JsonDetails) -> bytes:
    """The message of the details.

    >>> details = JsonDetails("$.a", IndexDetails("/lance.table.BTreeIndexDetails"), JsonType.INT64)
    >>> parse_json_details(write_json_details(details)) == details
    True
    """
    with storable("details of a JSON index"):
        message = wire.Json(
            path=item.path, target_details=details_message(item.target), target_data_type=int(item.data_type)
        )
    put_unknown(message, item.unknown)
    return write_message(message)


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """How text becomes tokens. The defaults are those of full-text indexes."""

    base: str = "simple"
    #: With quotes around it, as JSON has a string.
    language: str = '"English"'
    max_token_length: int | None = 40
    lower_case: bool = True
    stem: bool = True
    remove_stop_words: bool = True
    ascii_folding: bool = True
    min_ngram_length: int = 3
    max_ngram_length: int = 3
    prefix_only: bool = False
    with_position: bool = False
    block_size: int | None = None
    #: The message of the code tokenizer's own options, carried along unread.
    code_config: bytes = b""
    document_granularity: int = 0
    posting_format_version: int | None = None
    unknown: bytes = b""


@dataclass(frozen=True, slots=True)
class MinHashDetails:
    """How texts become signatures that are alike where the texts are."""

    num_hashes: int
    num_bands: int
    shingle_size: int
    tokenizer: Tokenizer
    signature_version: int = 0
    unknown: bytes = b""


def parse_min_hash_details(data: bytes) -> MinHashDetails:
    """The details that a message holds; Corrupt where they name no tokenizer or numbers that no signature has."""
    message = parse_message(wire.MinHash, data, "details of a MinHash index")
    if not message.HasField("tokenizer"):
        raise Corrupt("details of a MinHash index name no tokenizer")
    hashes, bands = message.num_hashes, message.num_bands
    if not (1 <= hashes <= 4096 and 1 <= bands <= 256 and hashes % bands == 0 and message.shingle_size >= 1):
        found = f"{hashes} hashes in {bands} bands of shingles of {message.shingle_size}"
        raise Corrupt(f"a MinHash index cannot have {found}")
    tokenizer = message.tokenizer
    return MinHashDetails(
        hashes,
        bands,
        message.shingle_size,
        Tokenizer(
            tokenizer.base_tokenizer if tokenizer.HasField("base_tokenizer") else "simple",
            tokenizer.language,
            tokenizer.max_token_length if tokenizer.HasField("max_token_length") else None,
            tokenizer.lower_case,
            tokenizer.stem,
            tokenizer.remove_stop_words,
            tokenizer.ascii_folding,
            tokenizer.min_ngram_length,
            tokenizer.max_ngram_length,
            tokenizer.prefix_only,
            tokenizer.with_position,
            tokenizer.block_size if tokenizer.HasField("block_size") else None,
            tokenizer.code_config,
            tokenizer.document_granularity,
            tokenizer.posting_format_version if tokenizer.HasField("posting_format_version") else None,
            unknown_of(tokenizer),
        ),
        message.signature_version,
        unknown_of(message),
    )


def write_min_hash_details(item: MinHashDetails) -> bytes:
    """The message of the details.

    >>> details = MinHashDetails(128, 16, 3, Tokenizer(stem=False, remove_stop_words=False))
    >>> parse_min_hash_details(write_min_hash_details(details)) == details
    True
    """
    text = item.tokenizer
    with storable("details of a MinHash index"):
        tokenizer = wire.Tokenizer(
            base_tokenizer=text.base,
            language=text.language,
            with_position=text.with_position,
            max_token_length=text.max_token_length,
            lower_case=text.lower_case,
            stem=text.stem,
            remove_stop_words=text.remove_stop_words,
            ascii_folding=text.ascii_folding,
            min_ngram_length=text.min_ngram_length,
            max_ngram_length=text.max_ngram_length,
            prefix_only=text.prefix_only,
            block_size=text.block_size,
            code_config=text.code_config,
            document_granularity=text.document_granularity,
            posting_format_version=text.posting_format_version,
        )
        put_unknown(tokenizer, text.unknown)
        message = wire.MinHash(
            num_hashes=item.num_hashes,
            num_bands=item.num_bands,
            shingle_size=item.shingle_size,
            tokenizer=tokenizer,
            signature_version=item.signature_version,
        )
    put_unknown(message, item.unknown)
    return write_message(message)


def parse_vector_metric(data: bytes) -> int:
    """The number of the metric by which a vector index was built.

    >>> parse_vector_metric(b""), parse_vector_metric(bytes([8, 1]))
    (0, 1)
    """
    return parse_message(wire.Vector, data, "details of a vector index").metric
