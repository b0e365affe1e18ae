"""Damage on purpose: data files of 2.x with bytes changed, cut off, or with metadata that lies."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from lancelet.format.fields import Field, FileDescriptor
from lancelet.testing.damage_parts import LARGE, NUMBERS, Parts, others, places_in, replaced, spell

__all__ = ["Damage", "boundaries", "damages", "lies"]

_DEEP = (20, 40, 4000)


@dataclass(frozen=True, slots=True)
class Damage:
    """A damaged file; ``in_page`` says that an error must name the column, the page and its bytes."""

    name: str
    data: bytes
    in_page: bool = False


def damages(data: bytes, draw: random.Random, count: int) -> Iterator[Damage]:
    """``count`` damaged forms of a file, drawn from all kinds."""
    parts = Parts.of(data)
    for _ in range(count):
        kind, weight = zip(*_KINDS, strict=True)
        yield draw.choices(kind, weight)[0](parts, draw)


def boundaries(data: bytes) -> Iterator[Damage]:
    """The file cut off at every structural boundary, right before it and right behind it."""
    parts = Parts.of(data)
    ranges = [place for column in parts.columns for page in column.pages for place in page.buffers]
    ranges += [*parts.column_places, *parts.global_buffers, parts.footer.column_table, parts.footer.global_table]
    places = {0, len(data)} | {edge for start, size in ranges for edge in (start, start + size)}
    for place in sorted({edge + step for edge in places for step in (-1, 0, 1)}):
        if 0 <= place < len(data):
            yield Damage(f"cut at {place}", data[:place])


def lies(data: bytes) -> Iterator[Damage]:
    """The file with each number and part of each page's description changed in turn, alone."""
    parts = Parts.of(data)
    for column, number, page in parts.pages():
        described = parts.describe(page)
        for path, value in places_in(described):
            for other in others(value):
                changed = parts.with_description(column, number, replaced(described, path, other))
                if changed is not None:
                    yield Damage(f"{spell(path)} of column {column} becomes {other!r}", changed, in_page=True)


def _flip(parts: Parts, draw: random.Random) -> Damage:
    """Some bytes of a page's buffers."""
    spans = [place for _, _, page in parts.pages() for place in page.buffers if place[1]]
    if not spans:
        return _noise(parts, draw)
    changed = bytearray(parts.data)
    start, size = draw.choice(spans)
    for _ in range(draw.choice((1, 1, 2, 8))):
        near = draw.random() < 0.4
        place = start + draw.randrange(min(size, 32) if near else size)
        changed[place] = draw.choice((0, 255, 127, changed[place] ^ 1 << draw.randrange(8)))
    return Damage("flipped bytes of a page", bytes(changed), in_page=True)


def _word(parts: Parts, draw: random.Random) -> Damage:
    """A whole number somewhere in a page's buffers."""
    width = draw.choice((2, 4, 8))
    spans = [place for _, _, page in parts.pages() for place in page.buffers if place[1] >= width]
    if not spans:
        return _noise(parts, draw)
    start, size = draw.choice(spans)
    place = start + draw.randrange(min(size // width, 16)) * width
    number = draw.choice([one for one in NUMBERS + LARGE if one < 256**width])
    changed = bytearray(parts.data)
    changed[place : place + width] = number.to_bytes(width, "little")
    return Damage(f"{width} bytes at {place} become {number}", bytes(changed), in_page=True)


def _noise(parts: Parts, draw: random.Random) -> Damage:
    """Some bytes of the metadata, or anywhere."""
    first = draw.choice((0, parts.footer.column_metadata_start, len(parts.data) - 100))
    changed = bytearray(parts.data)
    for _ in range(draw.choice((1, 2, 5))):
        changed[draw.randrange(max(first, 0), len(changed))] = draw.choice((0, 255, draw.randrange(256)))
    return Damage("noise", bytes(changed))


def _cut(parts: Parts, draw: random.Random) -> Damage:
    """A piece left out, so that what follows has moved."""
    start = draw.randrange(len(parts.data))
    size = draw.choice((1, 8, 64, 1000))
    return Damage(f"{size} bytes from {start} on left out", parts.data[:start] + parts.data[start + size :])


def _lie(parts: Parts, draw: random.Random) -> Damage:
    """Some numbers or parts of a page's description."""
    column, number, page = draw.choice(parts.pages())
    described: object = parts.describe(page)
    for _ in range(draw.choice((1, 1, 2, 3))):
        path, value = draw.choice([*places_in(described), ((), 0)])
        choices = others(value) if path else []
        if choices:
            described = replaced(described, path, draw.choice(choices))
    data = parts.with_description(column, number, described)
    return _noise(parts, draw) if data is None else Damage(f"column {column} is {described!r:.300}", data, in_page=True)


def _lying_page(parts: Parts, draw: random.Random) -> Damage:
    """A page's buffers or its number of rows."""
    column, number, page = draw.choice(parts.pages())
    buffers = list(page.buffers)
    at = draw.randrange(len(buffers)) if buffers else 0
    everywhere = [place for _, _, other in parts.pages() for place in other.buffers]
    match draw.randrange(6) if buffers else 5:
        case 0:
            buffers[at] = (buffers[at][0], draw.randrange(buffers[at][1] + 1))
        case 1:
            buffers[at] = (draw.choice(NUMBERS + LARGE), buffers[at][1])
        case 2:
            buffers[at] = (buffers[at][0], draw.choice(NUMBERS + LARGE))
        case 3:
            buffers[at] = draw.choice(everywhere)
        case 4:
            buffers = draw.choice((buffers[:at] + buffers[at + 1 :], [*buffers, buffers[at]], buffers[::-1]))
        case _:
            page = replace(page, length=draw.choice((*NUMBERS, *LARGE, page.length - 1, page.length + 1)))
    changed = replace(page, buffers=tuple(buffers))
    return Damage(f"buffers {buffers}, {page.length} rows", parts.with_page(column, number, changed))


def _lying_columns(parts: Parts, draw: random.Random) -> Damage:
    """Columns or pages missing, repeated or exchanged."""
    columns = list(parts.columns)
    at = draw.randrange(len(columns))
    pages = columns[at].pages
    match draw.randrange(5):
        case 0:
            del columns[at]
        case 1:
            columns.insert(at, draw.choice(columns))
        case 2:
            columns.reverse()
        case 3:
            columns[at] = replace(columns[at], pages=pages[:-1])
        case _:
            columns[at] = replace(columns[at], pages=pages + pages)
    return Damage(f"{len(columns)} columns, changed at {at}", parts.with_columns(columns))


def _lying_descriptor(parts: Parts, draw: random.Random) -> Damage:
    """The schema and the number of rows."""
    found = parts.descriptor
    fields = list(found.schema.walk())
    one = draw.choice(fields)
    match draw.randrange(3):
        case 0:
            rows = draw.choice((*NUMBERS, *LARGE, found.length + 1, found.length * 3))
            changed = replace(found, length=rows)
        case 1:
            changed = _replace_field(found, one, replace(one, logical_type=draw.choice(_TYPES)))
        case _:
            changes = [replace(one, children=one.children[1:]), replace(one, children=(*one.children, one))]
            changes += [replace(one, nullable=False), replace(one, metadata={"lance-encoding:blob": "true"})]
            changed = _replace_field(found, one, draw.choice(changes))
    return Damage(f"descriptor {changed!r:.300}", parts.with_columns(parts.columns, changed))


_TYPES: tuple[str, ...] = (
    "int8",
    "int64",
    "string",
    "bool",
    "struct",
    "list",
    "large_list",
    "fixed_size_list:float:3",
    "null",
    "map",
)
_TYPES += ("fixed_size_list:float:2147483647", "fixed_size_binary:7", "dict:string:int8:false", "decimal:128:3:1", "x")


def _replace_field(found: FileDescriptor, old: Field, new: Field) -> FileDescriptor:
    def walk(one: Field) -> Field:
        return new if one is old else replace(one, children=tuple(map(walk, one.children)))

    return replace(found, schema=replace(found.schema, fields=tuple(map(walk, found.schema.fields))))


def _lying_tables(parts: Parts, draw: random.Random) -> Damage:
    """The offset tables and the footer."""
    footer = parts.footer
    tables = bytearray(parts.data)
    start, size = draw.choice([footer.column_table, footer.global_table, (len(tables) - 40, 36)])
    width = draw.choice((4, 8)) if size == 36 else 8
    place = start + draw.randrange(size // width) * width
    number = draw.choice([one for one in NUMBERS + LARGE if one < 256**width])
    tables[place : place + width] = number.to_bytes(width, "little")
    return Damage(f"table or footer: {width} bytes at {place} become {number}", bytes(tables))


def _deep(parts: Parts, draw: random.Random) -> Damage:
    """A description nested far too deep: a message inside a message inside a message."""
    column, number, page = draw.choice(parts.pages())
    content = page.description if isinstance(page.description, bytes) else b""
    tag = draw.choice((0x0A, 0x12, 0x1A, 0x22, 0x2A))
    for _ in range(draw.choice(_DEEP)):
        content = bytes([tag]) + _varint(len(content)) + content
    return Damage("nested deeply", parts.with_page(column, number, replace(page, description=content)), in_page=True)


def _varint(number: int) -> bytes:
    out = b""
    while number >= 128:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


_KINDS: Sequence[tuple[Callable[[Parts, random.Random], Damage], int]] = (
    (_flip, 5),
    (_word, 5),
    (_noise, 2),
    (_cut, 1),
    (_lie, 6),
    (_lying_page, 3),
    (_lying_columns, 1),
    (_lying_descriptor, 1),
    (_lying_tables, 1),
    (_deep, 1),
)
