"""Functions of text, by Arrow's kernels; the few that need one value at a time are in ``text_values``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import InvalidInput
from lancelet.expr.functions.define import INTEGER, PRINTABLE, TEXT, Bind, Datum, Function, Run, cast_to, same_as, takes
from lancelet.expr.functions.patterns import for_each_pattern
from lancelet.expr.functions.places import letters_before
from lancelet.expr.limits import within_limits
from lancelet.expr.tree import Call, Expr
from lancelet.expr.types import is_binary, is_list, plain
from lancelet.expr.vectors import by_value, column, from_numpy, list_spans, raw_values, valid_in_all

__all__ = ["FUNCTIONS"]

#: Letters that become several in the other case, and the sigma, which ends words in another form.
_LETTERS_OF_THEIR_OWN = "[ßİŉǰΐΰև\u1e96-\u1e9aὐ-ῼﬀ-ﬆﬓ-ﬗΣ]"


def _constants(values: Sequence[Datum]) -> list[object] | None:
    """The values of arguments that are all constants; None if one differs from row to row."""
    return [value.as_py() for value in values] if all(isinstance(value, pa.Scalar) for value in values) else None


def _simple(kernel: Callable[[pa.Array], pa.Array]) -> Callable[[Call, Sequence[Datum], int], Datum]:
    return lambda _call, values, rows: kernel(column(values[0], rows))


def _in_case(kernel: Callable[[pa.Array], pa.Array], whole: Callable[[str], str]) -> Run:
    """Arrow changes letters one by one; what becomes several, or depends on the place in a word, is left to Python."""

    def run(_: Call, values: Sequence[Datum], rows: int) -> Datum:
        texts = column(values[0], rows)
        made = kernel(texts)
        if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
            return made
        odd = pc.fill_null(pc.match_substring_regex(texts, _LETTERS_OF_THEIR_OWN), False)
        if not odd.true_count:
            return made
        return pc.replace_with_mask(made, odd, by_value(whole, [texts.filter(odd)], odd.true_count, texts.type))

    return run


def _bind_size(name: str, arguments: Sequence[Expr]) -> Expr:
    """Sizes of large text are 64 bits wide. Of bytes, whatever the name, the bytes are counted."""
    if len(arguments) == 1 and is_list(plain(arguments[0].type)):
        raise InvalidInput(f"{name} takes text, found {arguments[0].type}", hint="array_length counts items")
    if len(arguments) == 1 and is_binary(arguments[0].type):
        kind = plain(arguments[0].type)
        wide = pat.is_large_binary(kind)
        bound = cast_to(arguments[0], kind if wide else pa.binary())
        return Call(name, (bound,), pa.int64() if wide else pa.int32())
    return _SIZED(name, arguments)


def _size_type(arguments: Sequence[Expr]) -> pa.DataType:
    return pa.int64() if pat.is_large_string(plain(arguments[0].type)) else pa.int32()


_SIZED = takes(PRINTABLE, returns=_size_type)


def _sized(kernel: Callable[[pa.Array], pa.Array], factor: int = 1) -> Callable[[Call, Sequence[Datum], int], Datum]:
    def run(call: Call, values: Sequence[Datum], rows: int) -> Datum:
        counted = (_bytes if is_binary(values[0].type) else kernel)(column(values[0], rows))
        return (pc.multiply(counted, factor) if factor > 1 else counted).cast(call.type)

    return run


def _bytes(text: pa.Array) -> pa.Array:
    return pc.binary_length(text)


_TRIMS: dict[str, Callable[..., pa.Array]] = {"btrim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}
_STRIPS: dict[str, Callable[[str, str], str]] = {"btrim": str.strip, "ltrim": str.lstrip, "rtrim": str.rstrip}


def _trim(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    text = column(values[0], rows)
    given = _constants(values[1:])
    if given is None:
        return by_value(_STRIPS[call.function], values, rows, call.type)
    characters = given[0] if given else " "
    if characters is None:
        return pa.nulls(rows, call.type)
    return _TRIMS[call.function](text, characters=str(characters)) if characters else text


def _left(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """The first letters, or all but the last; ``right`` the other way round."""
    given = _constants(values[1:])
    left = call.function == "left"
    if given is None:
        return by_value(lambda text, count: _ends(text, count, left=left), values, rows, call.type)
    count = given[0]
    text = column(values[0], rows)
    if not isinstance(count, int):
        return pa.nulls(rows, call.type)
    if left:
        return pc.utf8_slice_codeunits(text, 0, count)
    return pc.utf8_slice_codeunits(text, 0, 0) if count == 0 else pc.utf8_slice_codeunits(text, -count)


def _ends(text: str, count: int, *, left: bool) -> str:
    if left:
        return text[:count]
    return "" if count == 0 else text[-count:]


def _substr(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """Letters from a place on, counted from 1; places before the text count, but there is nothing."""
    given = _constants(values[1:])
    if given is None:
        return by_value(_part, values, rows, call.type)
    if None in given:
        return pa.nulls(rows, call.type)
    begin, end = _bounds(*given)  # type: ignore[arg-type]
    text = column(values[0], rows)
    return pc.utf8_slice_codeunits(text, begin, end) if end is not None else pc.utf8_slice_codeunits(text, begin)


def _bounds(start: int, length: int | None = None) -> tuple[int, int | None]:
    if length is not None and length < 0:
        raise InvalidInput(f"a part of {length} letters is asked for, expected 0 or more")
    return max(start - 1, 0), None if length is None else max(start - 1 + length, 0)


def _part(text: str, start: int, length: int | None = None) -> str:
    begin, end = _bounds(start, length)
    return text[begin:end]


def _pad(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """Filled up to a width, or cut off at it."""
    left = call.function == "lpad"
    given = _constants(values[1:])
    if given is None or None in given or (len(given) > 1 and len(str(given[1])) != 1):
        return by_value(lambda *each: _padded(*each, left=left), values, rows, call.type)
    width = max(int(given[0]), 0)  # type: ignore[call-overload]
    within_limits(call.function, [width * rows])
    fill = str(given[1]) if len(given) > 1 else " "
    made = (pc.utf8_lpad if left else pc.utf8_rpad)(column(values[0], rows), width=width, padding=fill)
    return pc.utf8_slice_codeunits(made, 0, width)


def _padded(text: str, width: int, fill: str = " ", *, left: bool) -> str:
    missing = max(width, 0) - len(text)
    within_limits("lpad" if left else "rpad", [missing])
    if missing <= 0 or not fill:
        return text[: max(width, 0)]
    filling = (fill * (missing // len(fill) + 1))[:missing]
    return filling + text if left else text + filling


def _replace(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    given = _constants(values[1:])
    if given is None or None in given or given[0] == "":
        return by_value(str.replace, values, rows, call.type)
    return pc.replace_substring(column(values[0], rows), pattern=given[0], replacement=given[1])


def _repeat(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    text, times = column(values[0], rows), column(values[1], rows)
    times = pc.max_element_wise(times, pa.scalar(0, pa.int64()), skip_nulls=False)
    sizes = pc.multiply(pc.binary_length(text).cast(pa.float64()), times.cast(pa.float64(), safe=False))
    within_limits(call.function, sizes.fill_null(0))
    return pc.binary_repeat(text, times).cast(call.type)


_TESTS: dict[str, tuple[Callable[..., pa.Array], Callable[[str, str], bool]]] = {
    "starts_with": (pc.starts_with, str.startswith),
    "ends_with": (pc.ends_with, str.endswith),
    "contains": (pc.match_substring, str.__contains__),
}


def _tested(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    kernel, by_letter = _TESTS[call.function]
    if isinstance(values[1], pa.Scalar) and values[1].is_valid:
        return kernel(column(values[0], rows), pattern=values[1].as_py())
    return by_value(by_letter, values, rows, pa.bool_())


def _strpos(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """The letter at which a text is found, from 1 on; 0 if it is not."""
    text = column(values[0], rows)

    def found(pattern: str, places: pa.Array | None) -> pa.Array:
        searched = text if places is None else text.take(places)
        at = pc.find_substring(searched, pattern=pattern)
        offsets = raw_values(at).astype(np.int64)
        letters = np.where(offsets < 0, 0, letters_before(searched, np.maximum(offsets, 0)) + 1)
        return from_numpy(letters, pa.int64(), valid_in_all(at))

    return for_each_pattern(values[1], rows, pa.int64(), found).cast(call.type)


def _split_part(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """The n-th of the parts between delimiters, from the end where n is negative; empty where there are fewer."""
    given = _constants(values[1:])
    if given is None or None in given or given[0] == "":
        return by_value(_nth_part, values, rows, call.type)
    delimiter, number = str(given[0]), int(given[1])  # type: ignore[call-overload]
    if number == 0:
        raise InvalidInput("the parts of split_part are counted from 1, or from -1 at the end; found 0")
    starts, lengths, parts = list_spans(pc.split_pattern(column(values[0], rows), pattern=delimiter))
    at = starts + number - 1 if number > 0 else starts + lengths + number
    there = (lengths >= abs(number)) & (lengths > 0)
    picked = parts.take(from_numpy(at, pa.int64(), there))
    empty = pa.array(~there & (lengths > 0))
    return pc.if_else(empty, pa.scalar("", picked.type), picked).cast(call.type)


def _nth_part(text: str, delimiter: str, number: int) -> str:
    if number == 0:
        raise InvalidInput("the parts of split_part are counted from 1, or from -1 at the end; found 0")
    parts = text.split(delimiter) if delimiter else [text]
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


def _joined_type(arguments: Sequence[Expr]) -> pa.DataType:
    return pa.large_string() if any(pat.is_large_string(plain(each.type)) for each in arguments) else pa.string()


def _bind_chain(name: str, arguments: Sequence[Expr]) -> Expr:
    """One level of ``||``, whose order does not matter."""
    flat: list[Expr] = []
    for each in arguments:
        flat.extend(each.arguments if isinstance(each, Call) and each.function == name else [each])
    made = _CONCAT(name, flat)
    return made.arguments[0] if isinstance(made, Call) and len(made.arguments) == 1 else made


def _concat(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    """Texts one after another: nulls are passed over, but ``||`` with a null is null."""
    kind = call.type
    texts = [column(value, rows).cast(kind) for value in values]
    nulls = "emit_null" if call.function == "||" else "replace"
    return pc.binary_join_element_wise(*texts, pa.scalar("", kind), null_handling=nulls, null_replacement="")


def _concat_ws(call: Call, values: Sequence[Datum], rows: int) -> Datum:
    separator, *rest = [column(value, rows).cast(call.type) for value in values]
    if not rest:
        return pc.if_else(pc.is_null(separator), separator, pa.scalar("", call.type))
    # Arrow loses rows of which all texts are null: one of them is made empty.
    missing = pc.is_null(rest[0])
    for each in rest[1:]:
        missing = pc.and_(missing, pc.is_null(each))
    rest[0] = pc.if_else(missing, pa.scalar("", call.type), rest[0])
    return pc.binary_join_element_wise(*rest, separator, null_handling="skip")


def _uuid(_: Call, _values: Sequence[Datum], rows: int) -> Datum:
    """Random identifiers of version 4, as text."""
    raw = np.frombuffer(os.urandom(16 * rows), np.uint8).reshape(rows, 16).copy()
    raw[:, 6] = (raw[:, 6] & 0x0F) | 0x40
    raw[:, 8] = (raw[:, 8] & 0x3F) | 0x80
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    letters = np.full((rows, 36), ord("-"), np.uint8)
    places = [at for at in range(36) if at not in (8, 13, 18, 23)]
    letters[:, places[::2]] = digits[raw >> 4]
    letters[:, places[1::2]] = digits[raw & 0x0F]
    offsets = np.arange(rows + 1, dtype=np.int32) * 36
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(letters))


_SAME: Bind = takes(TEXT, returns=same_as(0))
_CONCAT: Bind = takes(PRINTABLE, rest=PRINTABLE, returns=_joined_type)

FUNCTIONS = (
    Function("lower", _SAME, _in_case(pc.utf8_lower, str.lower), ("lcase",), cost=8),
    Function("upper", _SAME, _in_case(pc.utf8_upper, str.upper), ("ucase",), cost=8),
    Function("reverse", _SAME, _simple(pc.utf8_reverse), cost=8),
    Function(
        "character_length", _bind_size, _sized(pc.utf8_length), ("length", "char_length", "len", "strlen"), cost=3
    ),
    Function("octet_length", _bind_size, _sized(_bytes), cost=2),
    Function("bit_length", _bind_size, _sized(_bytes, 8), cost=2),
    Function("btrim", takes(TEXT, TEXT, least=1, returns=same_as(0)), _trim, ("trim",), cost=8),
    Function("ltrim", takes(TEXT, TEXT, least=1, returns=same_as(0)), _trim, cost=8),
    Function("rtrim", takes(TEXT, TEXT, least=1, returns=same_as(0)), _trim, cost=8),
    Function("left", takes(TEXT, INTEGER, returns=same_as(0)), _left, cost=8),
    Function("right", takes(TEXT, INTEGER, returns=same_as(0)), _left, cost=8),
    Function(
        "substr", takes(TEXT, INTEGER, INTEGER, least=2, returns=same_as(0)), _substr, ("substring", "mid"), cost=8
    ),
    Function("lpad", takes(TEXT, INTEGER, TEXT, least=2, returns=same_as(0)), _pad, cost=8),
    Function("rpad", takes(TEXT, INTEGER, TEXT, least=2, returns=same_as(0)), _pad, cost=8),
    Function("replace", takes(TEXT, TEXT, TEXT, returns=same_as(0)), _replace, cost=10),
    Function("repeat", takes(TEXT, INTEGER, returns=same_as(0)), _repeat, cost=8),
    *(Function(name, takes(TEXT, TEXT, returns=pa.bool_()), _tested, cost=8) for name in _TESTS),
    Function("strpos", takes(TEXT, TEXT, returns=_size_type), _strpos, ("instr", "position"), cost=10),
    Function("split_part", takes(TEXT, TEXT, INTEGER, returns=same_as(0)), _split_part, cost=15),
    Function("concat", _CONCAT, _concat, strict=False, cost=8),
    Function("||", _bind_chain, _concat, cost=8),
    Function("concat_ws", takes(TEXT, rest=PRINTABLE, returns=_joined_type), _concat_ws, strict=False, cost=8),
    Function("uuid", takes(returns=pa.string()), _uuid, constant=False, cost=8),
)
