"""Arrow's compute functions as ours, by the names and options that pyarrow's expressions call them with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pat

from lancelet.errors import InvalidInput, Unsupported
from lancelet.expr.building import call, constant, known_finite, known_infinite
from lancelet.expr.folding import folded
from lancelet.expr.functions.casts import cast
from lancelet.expr.functions.comparisons import one_of
from lancelet.expr.functions.conditional import case
from lancelet.expr.functions.membership import one_of_list
from lancelet.expr.names import nearest
from lancelet.expr.tree import Call, Expr, Literal
from lancelet.expr.types import plain

__all__ = ["arrow_call", "offered"]

Options: TypeAlias = Mapping[str, Any]
Arguments: TypeAlias = Sequence[Expr]
_Build: TypeAlias = Callable[[Arguments, Options], Expr]

#: What Arrow numbers: passing over nulls, replacing them, rounding ``half_towards_infinity``, no end of a slice.
_SKIP_NULLS, _REPLACE_NULLS, _HALF_AWAY, _END = 1, 2, 7, 2**63 - 1
_PLACE = re.compile(r"\[(\d+)\]")
_UNITS = (
    "nanosecond",
    "microsecond",
    "millisecond",
    "second",
    "minute",
    "hour",
    "day",
    "week",
    "month",
    "quarter",
    "year",
)


def arrow_call(name: str, arguments: Arguments, options: pa.StructScalar | None) -> Expr:
    """A call of one of Arrow's functions; Unsupported names the nearest that is offered."""
    given = {} if options is None else _options(options)
    plain = _PLAIN.get(name)
    if plain is not None:
        return call(plain, *arguments)
    build = _BUILT.get(name)
    if build is None:
        hint = nearest(name, sorted([*_PLAIN, *_BUILT]))
        raise Unsupported(f"Arrow's function {name!r} is not offered in expressions", hint=hint)
    try:
        return build(arguments, given)
    except KeyError as missing:
        raise Unsupported(f"Arrow's function {name!r} comes without its option {missing}") from None


def offered(name: str) -> bool:
    """Whether a function of Arrow's can be called.

    >>> offered("utf8_lower"), offered("utf8_swapcase")
    (True, False)
    """
    return name in _PLAIN or name in _BUILT


def _options(scalar: pa.StructScalar) -> Options:
    made: dict[str, Any] = {}
    for field in scalar.type:
        value = scalar[field.name]
        # A type is said by a null of it; lists of any type are handed on as they are.
        made[field.name] = value if field.name in ("to_type", "value_set", "fill_value") else value.as_py()
    return made


def _comparable(arguments: Arguments, options: Options) -> list[Expr]:
    """The value and the pattern, in lower case where it does not matter."""
    both = [arguments[0], constant(options["pattern"])]
    return [call("lower", each) for each in both] if options["ignore_case"] else both


def _matched(name: str) -> _Build:
    return lambda arguments, options: call(name, *_comparable(arguments, options))


def _like(arguments: Arguments, options: Options) -> Expr:
    return call("ilike" if options["ignore_case"] else "like", arguments[0], constant(options["pattern"]))


def _regular(arguments: Arguments, options: Options) -> Expr:
    flags = [constant("i")] if options["ignore_case"] else []
    return call("regexp_like", arguments[0], constant(options["pattern"]), *flags)


def _is_in(arguments: Arguments, options: Options) -> Expr:
    (value,) = arguments
    values = options["value_set"].values
    # As SQL has it, and so pylance: a null is never known to be among others.
    if options["null_matching_behavior"] == _SKIP_NULLS:
        values = values.drop_null()
    if pat.is_dictionary(values.type):
        values = values.dictionary_decode()
    if isinstance(values, pa.ExtensionArray):
        values = values.storage
    if not len(values):
        return folded(one_of(value, []))
    return folded(one_of_list(value, values))


def _cast(arguments: Arguments, options: Options) -> Expr:
    return folded(cast(arguments[0], options["to_type"].type, attempt=False))


def _is_null(arguments: Arguments, options: Options) -> Expr:
    null = call("is_null", arguments[0])
    return call("or", null, call("isnan", arguments[0])) if options.get("nan_is_null") else null


def _case_when(arguments: Arguments, _: Options) -> Expr:
    conditions, *values = arguments
    if not isinstance(conditions, Call) or conditions.function != "struct":
        raise Unsupported("case_when is offered with conditions that make_struct puts together")
    tests = conditions.arguments
    default = values[len(tests)] if len(values) > len(tests) else None
    return folded(case(list(zip(tests, values[: len(tests)], strict=True)), default))


def _struct(arguments: Arguments, options: Options) -> Expr:
    names = options.get("field_names") or [f"c{place}" for place in range(len(arguments))]
    pairs = [each for name, value in zip(names, arguments, strict=True) for each in (constant(name), value)]
    return call("named_struct", *pairs)


def _struct_field(arguments: Arguments, options: Options) -> Expr:
    found = arguments[0]
    path = options.get("field_ref")
    if path is None:
        raise Unsupported("struct_field is offered with names or places")
    while path:
        if not pat.is_struct(plain(found.type)):
            raise InvalidInput(f"there is no field {path!r} in {found.type}")
        name, path = _first_name(plain(found.type), path)
        found = call("get_field", found, constant(name))
    return found


def _first_name(kind: pa.StructType, path: str) -> tuple[str, str]:
    """The field that ``.name`` or ``[place]`` begins with, and the rest; names with dots are not marked as such."""
    place = _PLACE.match(path)
    if place is not None and int(place[1]) < kind.num_fields:
        return kind.field(int(place[1])).name, path[place.end() :]
    names = sorted((field.name for field in kind), key=len, reverse=True)
    for name in names:
        rest = path[1 + len(name) :]
        if path.startswith(f".{name}") and (not rest or rest[0] in ".["):
            return name, rest
    raise InvalidInput(f"there is no field {path!r} in {kind}", hint=nearest(path[1:], names))


def _element(arguments: Arguments, _: Options) -> Expr:
    value, place = arguments
    # Arrow counts from 0.
    return call("array_element", value, call("+", place, constant(1)))


def _slice(arguments: Arguments, options: Options) -> Expr:
    start, stop, step = options["start"], options["stop"], options["step"]
    if start < 0 or stop < start or step != 1:
        raise Unsupported(
            f"a slice of text from {start} to {stop} by {step}: offered is one forward from its beginning"
        )
    length = [] if stop == _END else [constant(stop - start)]
    return call("substr", arguments[0], constant(start + 1), *length)


def _replaced(arguments: Arguments, options: Options) -> Expr:
    _all_of_them(options)
    return call("replace", arguments[0], constant(options["pattern"]), constant(options["replacement"]))


def _replaced_by_pattern(arguments: Arguments, options: Options) -> Expr:
    _all_of_them(options)
    given = [constant(options["pattern"]), constant(options["replacement"]), constant("g")]
    return call("regexp_replace", arguments[0], *given)


def _all_of_them(options: Options) -> None:
    if options.get("max_replacements", -1) not in (-1, None):
        raise Unsupported("replacing some occurrences is not offered, replacing all is")


def _trimmed(name: str) -> _Build:
    return lambda arguments, options: call(name, arguments[0], constant(options["characters"]))


def _trimmed_of_space(pattern: str) -> _Build:
    return lambda arguments, _: call("regexp_replace", arguments[0], constant(pattern), constant(""), constant("g"))


def _joined(arguments: Arguments, options: Options) -> Expr:
    *values, separator = arguments
    if options.get("null_handling") == _SKIP_NULLS:
        return call("concat_ws", separator, *values)
    if options.get("null_handling") == _REPLACE_NULLS:
        values = [call("coalesce", value, constant(options["null_replacement"])) for value in values]
    found = values[0]
    for value in values[1:]:
        found = call("||", found, separator, value)
    return found


def _found_at(arguments: Arguments, options: Options) -> Expr:
    return call("-", call("strpos", *_comparable(arguments, options)), constant(1))


def _extreme(name: str) -> _Build:
    def build(arguments: Arguments, options: Options) -> Expr:
        found = call(name, *arguments)
        if options.get("skip_nulls", True):
            return found
        there = call("and", *(call("is_not_null", each) for each in arguments))
        return folded(case([(there, found)], None))

    return build


def _part(word: str) -> _Build:
    return lambda arguments, _: call("date_part", constant(word), arguments[0])


def _weekday(arguments: Arguments, options: Options) -> Expr:
    since = call(
        "-", call("+", call("date_part", constant("dow"), arguments[0]), constant(7)), constant(_first(options))
    )
    place = call("%", since, constant(7))
    return place if options.get("count_from_zero", True) else call("+", place, constant(1))


def _first(options: Options) -> int:
    """The weekday that a week begins with, counted from Sunday."""
    return int(options.get("week_start", 1)) % 7


def _floor(arguments: Arguments, options: Options) -> Expr:
    unit = _UNITS[options["unit"]]
    if options["multiple"] != 1 or (unit == "week" and not options["week_starts_monday"]):
        raise Unsupported("times are rounded down to one unit, weeks from Monday")
    return call("date_trunc", constant(unit), arguments[0])


def _rounded(arguments: Arguments, options: Options) -> Expr:
    if options["round_mode"] != _HALF_AWAY:
        raise Unsupported("numbers are rounded half away from zero", hint="round_mode='half_towards_infinity'")
    return call("round", arguments[0], constant(options["ndigits"]))


def _both_known(name: str) -> _Build:
    """Arrow's plain and, or: null where either is null."""

    def build(arguments: Arguments, _: Options) -> Expr:
        missing = call("or", *(call("is_null", each) for each in arguments))
        return folded(case([(missing, Literal(pa.scalar(None, pa.bool_())))], call(name, *arguments)))

    return build


def _one(name: str) -> _Build:
    return lambda arguments, _: call(name, *arguments)


def _made(build: Callable[[Expr], Expr]) -> _Build:
    return lambda arguments, _: build(arguments[0])


_ARITHMETIC = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "power", "negate": "negative"}
_ALIKE = (
    *("abs", "sqrt", "sin", "cos", "tan", "asin", "acos", "ln", "log10", "log2"),
    *("exp", "sign", "floor", "ceil", "trunc", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
)
_CHECKED = ("abs", "sqrt", "sin", "cos", "tan", "asin", "acos", "ln", "log10", "log2", "acosh", "atanh")

_PLAIN: dict[str, str] = {
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
    "and_kleene": "and",
    "or_kleene": "or",
    "invert": "not",
    "xor": "!=",
    "is_valid": "is_not_null",
    "is_nan": "isnan",
    **_ARITHMETIC,
    **{f"{name}_checked": ours for name, ours in _ARITHMETIC.items()},
    **{name: name for name in _ALIKE},
    **{f"{name}_checked": name for name in _CHECKED},
    "bit_wise_and": "&",
    "bit_wise_or": "|",
    "bit_wise_xor": "^",
    "bit_wise_not": "~",
    "shift_left": "<<",
    "shift_right": ">>",
    "coalesce": "coalesce",
    "utf8_lower": "lower",
    "utf8_upper": "upper",
    "ascii_lower": "lower",
    "ascii_upper": "upper",
    "utf8_length": "length",
    "binary_length": "octet_length",
    "utf8_reverse": "reverse",
    "list_value_length": "cardinality",
}
_PARTS = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "day": "day",
    "hour": "hour",
    "minute": "minute",
    "second": "second",
    "iso_week": "week",
    "day_of_year": "doy",
}
_BUILT: dict[str, _Build] = {
    **{name: _both_known(name[:3].rstrip("_")) for name in ("and", "and_", "or", "or_")},
    "and_not_kleene": lambda arguments, _: call("and", arguments[0], call("not", arguments[1])),
    "is_null": _is_null,
    "is_finite": _made(known_finite),
    "is_inf": _made(known_infinite),
    "is_in": _is_in,
    "cast": _cast,
    "if_else": lambda arguments, _: folded(case([(arguments[0], arguments[1])], arguments[2])),
    "case_when": _case_when,
    "make_struct": _struct,
    "struct_field": _struct_field,
    "list_element": _element,
    "min_element_wise": _extreme("least"),
    "max_element_wise": _extreme("greatest"),
    "starts_with": _matched("starts_with"),
    "ends_with": _matched("ends_with"),
    "match_substring": _matched("contains"),
    "match_substring_regex": _regular,
    "match_like": _like,
    "find_substring": _found_at,
    "utf8_slice_codeunits": _slice,
    "replace_substring": _replaced,
    "replace_substring_regex": _replaced_by_pattern,
    "utf8_trim": _trimmed("btrim"),
    "utf8_ltrim": _trimmed("ltrim"),
    "utf8_rtrim": _trimmed("rtrim"),
    "utf8_trim_whitespace": _trimmed_of_space(r"^\s+|\s+$"),
    "utf8_ltrim_whitespace": _trimmed_of_space(r"^\s+"),
    "utf8_rtrim_whitespace": _trimmed_of_space(r"\s+$"),
    "binary_join_element_wise": _joined,
    "day_of_week": _weekday,
    "floor_temporal": _floor,
    "round": _rounded,
    **{name: _part(word) for name, word in _PARTS.items()},
}
