"""Text, pyarrow expressions and Substrait to typed trees over the columns of a schema."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from lancelet.errors import InvalidInput, LanceletError
from lancelet.expr.binder import Binder
from lancelet.expr.functions.logic import condition
from lancelet.expr.literal_lists import Cut, cut_lists
from lancelet.expr.names import SYSTEM_COLUMNS
from lancelet.expr.quick import quick_condition
from lancelet.expr.scope import TableScope
from lancelet.expr.skeleton import MOST_LEVELS, assembled, nesting
from lancelet.expr.tree import Call, Column, Expr, depth_of

if TYPE_CHECKING:
    from sqlglot import Token

__all__ = ["parse_filter", "parse_value"]

_Made = TypeVar("_Made")

#: How deep brackets may be within one piece, and from which depth on the parser gets a stack of its own.
_MOST_BRACKETS, _SHALLOW = 50, 12
_LONGEST = 60


def parse_filter(text: str | pc.Expression | bytes, schema: pa.Schema) -> Expr:
    """The condition that a text states of rows of a schema; also a pyarrow expression, or a Substrait message.

    >>> parse_filter("x >= 3", pa.schema({"x": pa.int8()})).function
    '>='
    """
    if isinstance(text, pc.Expression):
        from lancelet.expr.from_pyarrow import translated

        return _checked(condition(translated(text, schema)))
    if isinstance(text, bytes | bytearray | memoryview):
        from lancelet.expr.from_substrait import translated_message

        return _checked(condition(translated_message(bytes(text), schema)))
    found = quick_condition(text, schema, _is_plain_name) if isinstance(text, str) else None
    return _Text(text, schema).condition() if found is None else found


def parse_value(text: str, schema: pa.Schema) -> Expr:
    """The value that a text computes from rows of a schema. The name of a column, however odd, is that column.

    >>> parse_value("x + 3", pa.schema({"x": pa.int64()})).type
    DataType(int64)
    """
    if text in schema.names:
        return Column((text,), schema.field(text).type)
    if text in SYSTEM_COLUMNS:
        return Column((text,), pa.uint64())
    return _Text(text, schema).value()


class _Text:
    """A text with its tokens, and where they stand."""

    def __init__(self, text: str, schema: pa.Schema) -> None:
        if not isinstance(text, str):
            raise InvalidInput(f"an expression is {type(text).__name__}, expected text")
        self._text = text
        self._cut: Cut = cut_lists(text)
        self._tokens = _tokens(self._cut, text)
        self._binder = Binder(TableScope(schema), self._cut.lists)

    def condition(self) -> Expr:
        """The text as a condition."""
        return _checked(assembled(self._tokens, self._fail, lambda start, stop: self._piece(start, stop, condition)))

    def value(self) -> Expr:
        """The text as a value of any type."""
        return _checked(assembled(self._tokens, self._fail, lambda start, stop: self._piece(start, stop, _same)))

    def _piece(self, start: int, stop: int, check: Callable[[Expr], Expr]) -> Expr:
        tokens, whole = self._tokens[start:stop], self._is_whole(start, stop)
        try:
            depth = nesting(tokens)
            if depth > _MOST_BRACKETS:
                raise InvalidInput(f"brackets are nested {depth} deep, expected at most {_MOST_BRACKETS}")
            if depth > _SHALLOW:
                return _on_a_stack_of_its_own(lambda: self._bound(tokens, whole, check))
            return self._bound(tokens, whole, check)
        except LanceletError as error:
            self._place(error, start, stop)
            raise

    def _bound(self, tokens: Sequence[Token], whole: bool, check: Callable[[Expr], Expr]) -> Expr:
        from sqlglot import exp
        from sqlglot.errors import ParseError

        from lancelet.expr.dialect import FilterDialect

        dialect = FilterDialect()
        try:
            node: Any = dialect.parser().parse_into(exp.Condition, list(tokens), self._cut.text)[0]
        except ParseError as error:
            raise InvalidInput(f"cannot be read: {_said(error)}") from None
        except RecursionError:
            raise InvalidInput("is nested too deeply to be read") from None
        if node is None:
            raise InvalidInput("cannot be read")
        return check(self._binder.root(node) if whole else self._binder.bind(node))

    def _is_whole(self, start: int, stop: int) -> bool:
        """Whether there is nothing around a piece but brackets."""
        around = len(self._tokens) - stop
        texts = [token.text for token in (*self._tokens[:start], *self._tokens[stop:])]
        return start == around and texts == ["("] * start + [")"] * around

    def _place(self, error: LanceletError, start: int, stop: int) -> None:
        """Say in an error's message which piece it is about, and where that is."""
        begin = self._cut.original(self._tokens[start].start)
        end = self._cut.original(self._tokens[stop - 1].end) + 1
        piece = self._text[begin:end]
        if len(piece) > _LONGEST:
            piece = f"{piece[: _LONGEST - 3]}..."
        error.message = f"{error.message}, in {piece!r} at character {begin + 1}"

    def _fail(self, what: str, at: int) -> NoReturn:
        if at >= len(self._tokens):
            raise InvalidInput(f"{what} at the end of {_short(self._text)!r}")
        place = self._cut.original(self._tokens[at].start)
        raise InvalidInput(f"{what} at character {place + 1} of {_short(self._text)!r}")


@lru_cache(1024)
def _is_plain_name(name: str) -> bool:
    """Whether a word before a comparison names a column, rather than being a word of SQL."""
    schema = pa.schema({name: pa.int64()})
    try:
        found = _Text(f"{name} < 1", schema).condition()
    except InvalidInput:
        return False
    return isinstance(found, Call) and found.function == "<" and found.arguments[0] == Column((name,), pa.int64())


def _same(expr: Expr) -> Expr:
    return expr


def _checked(expr: Expr) -> Expr:
    if depth_of(expr) > MOST_LEVELS:
        raise InvalidInput(f"the expression is nested more than {MOST_LEVELS} levels deep")
    return expr


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _tokens(cut: Cut, text: str) -> list[Token]:
    from sqlglot import TokenType
    from sqlglot.errors import TokenError

    from lancelet.expr.dialect import FilterDialect

    try:
        tokens = FilterDialect().tokenize(cut.text)
    except TokenError as error:
        raise InvalidInput(f"{_short(text)!r} cannot be read: {str(error).splitlines()[0]}") from None
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        raise InvalidInput(f"{_short(text)!r} is empty, expected an expression")
    return tokens


def _said(error: Exception) -> str:
    details = getattr(error, "errors", None) or [{}]
    description = details[0].get("description") or "it is no expression"
    near = details[0].get("highlight")
    return f"{description} near {near!r}" if near else str(description)


def _on_a_stack_of_its_own(run: Callable[[], _Made]) -> _Made:
    """Run something that recurses where nothing is on the stack yet: each thread counts its own frames."""
    made: list[_Made] = []
    failed: list[BaseException] = []

    def guarded() -> None:
        try:
            made.append(run())
        except BaseException as error:  # noqa: BLE001 - raised again by the caller
            failed.append(error)

    thread = threading.Thread(target=guarded, name="lancelet-parse")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return made[0]
