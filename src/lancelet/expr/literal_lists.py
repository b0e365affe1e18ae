"""Long lists of constants, cut out of the text before it is parsed and read in one go each."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Cut", "cut_lists", "list_name"]

#: A list of fewer characters is left to the parser.
_SHORTEST = 500
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
_STRING = r"'[^']*(?:''[^']*)*'"
_SKIPPED = re.compile(
    rf"""{_STRING}|"[^"]*(?:""[^"]*)*"|`[^`]*(?:``[^`]*)*`|--[^\n]*|/\*.*?\*/|\bin\s*\(""", re.IGNORECASE | re.DOTALL
)
_NUMBERS = re.compile(rf"\s*{_NUMBER}\s*(?:,\s*{_NUMBER}\s*)*\)")
_STRINGS = re.compile(rf"\s*{_STRING}\s*(?:,\s*{_STRING}\s*)*\)")
#: No name that anybody writes begins like this.
_MARK = "\ue000list"


@dataclass(frozen=True, slots=True)
class Cut:
    """A text whose long lists are replaced by names, the lists, and where the characters were before."""

    text: str
    lists: tuple[pa.Array, ...]
    #: Where in the shortened text a list was cut, and how many characters fewer there are from there on.
    _places: tuple[int, ...]
    _shifts: tuple[int, ...]

    def original(self, place: int) -> int:
        """Where a character of the shortened text stood."""
        found = bisect_right(self._places, place)
        return place + (self._shifts[found - 1] if found else 0)


def list_name(name: str) -> int | None:
    """Which list a name stands for; None if it is the name of something else."""
    return int(name.removeprefix(_MARK)) if name.startswith(_MARK) else None


def cut_lists(text: str) -> Cut:
    """Replace each long list of constants after ``IN``.

    >>> cut = cut_lists("x in (" + ",".join(map(str, range(200))) + ") and y")
    >>> len(cut.lists[0]), cut.text.endswith(") and y"), cut.text[: 6]
    (200, True, 'x in (')
    """
    if len(text) < _SHORTEST:
        return Cut(text, (), (), ())
    pieces: list[str] = []
    lists: list[pa.Array] = []
    places: list[int] = []
    shifts: list[int] = []
    done = at = written = 0
    while (found := _SKIPPED.search(text, at)) is not None:
        at = found.end()
        if not found[0].endswith("("):
            continue
        match = _NUMBERS.match(text, at) or _STRINGS.match(text, at)
        if match is None or match.end() - at < _SHORTEST:
            continue
        name = f"`{_MARK}{len(lists)}`"
        lists.append(_values(text[at : match.end() - 1]))
        pieces += [text[done:at], name]
        written += at - done + len(name)
        done = at = match.end() - 1
        places.append(written)
        shifts.append(done - written)
    return Cut("".join([*pieces, text[done:]]), tuple(lists), tuple(places), tuple(shifts))


def _values(body: str) -> pa.Array:
    if "'" in body:
        found = re.findall(r"'([^']*(?:''[^']*)*)'", body)
        return pa.array([item.replace("''", "'") for item in found] if "''" in body else found, pa.string())
    digits = pc.utf8_trim_whitespace(pa.array(body.split(",")))
    digits = pc.utf8_ltrim(digits, characters="+")
    for kind in (pa.int64(), pa.uint64()):
        try:
            return digits.cast(kind)
        except pa.ArrowInvalid:
            continue
    return digits.cast(pa.float64())
