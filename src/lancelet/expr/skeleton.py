"""The skeleton of a condition: and, or, not and parentheses, split off the tokens without recursion.

    a = 1 AND (b BETWEEN 2 AND 3 OR NOT c)
    -----      -------------------      -      pieces: each is parsed by itself, of any grammar

A parenthesis is part of the skeleton where nothing but and, or, its own end or the text's end follows it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from lancelet.errors import InvalidInput
from lancelet.expr.functions.logic import all_of, any_of, condition, negated
from lancelet.expr.tree import Call, Expr

if TYPE_CHECKING:
    from sqlglot import Token

__all__ = ["MOST_LEVELS", "Pieces", "assembled", "nesting"]

#: How deep a tree may be: whatever walks it later recurses.
MOST_LEVELS = 200
#: Given the first token of a piece and the one after its last: what it means.
Pieces = Callable[[int, int], Expr]


@dataclass(slots=True)
class _Level:
    """What is known of a condition within parentheses, or of the whole: expressions, and how deep each is."""

    choices: list[tuple[Expr, int]] = field(default_factory=list)
    parts: list[tuple[Expr, int]] = field(default_factory=list)
    negations: int = 0

    def add(self, expr: Expr, depth: int) -> int:
        """A part is complete; returns how deep it is."""
        if self.negations:
            expr = condition(expr)
        if self.negations % 2:
            made = negated(expr)
            depth += isinstance(made, Call) and made.function == "not" and made.arguments[0] is expr
            expr = made
        self.negations = 0
        self.parts.append((expr, depth))
        return depth

    def choose(self) -> None:
        """What follows is another choice."""
        self.choices.append(_joined("and", self.parts))
        self.parts = []

    def close(self) -> tuple[Expr, int]:
        """The whole condition, and how deep it is."""
        return _joined("or", [*self.choices, _joined("and", self.parts)])


def _joined(name: str, parts: list[tuple[Expr, int]]) -> tuple[Expr, int]:
    if len(parts) == 1:
        return parts[0]
    flat = [depth - (isinstance(expr, Call) and expr.function == name) for expr, depth in parts]
    join = all_of if name == "and" else any_of
    return join([expr for expr, _ in parts]), 1 + max(flat)


def assembled(tokens: Sequence[Token], fail: Callable[[str, int], NoReturn], piece: Pieces) -> Expr:
    """The condition, or single value, that tokens spell; ``fail`` raises what is wrong at a token."""
    from sqlglot import TokenType as Kind

    ends, listed = _brackets(tokens, fail)
    levels = [_Level()]
    at, end = 0, len(tokens)
    while True:
        level = levels[-1]
        while at < end and tokens[at].token_type is Kind.NOT and tokens[at].text.upper() == "NOT":
            level.negations += 1
            at += 1
        if at < end and tokens[at].token_type is Kind.L_PAREN and _is_group(tokens, at, ends, listed):
            levels.append(_Level())
            at += 1
            continue
        stop = _end_of_piece(tokens, at, ends)
        if stop == at:
            fail("expected an expression", at)
        expr, depth = piece(at, stop), 1
        at = stop
        while True:
            if levels[-1].add(expr, depth) > MOST_LEVELS:
                raise InvalidInput(f"the expression is nested more than {MOST_LEVELS} levels deep")
            if at < end and tokens[at].token_type is Kind.R_PAREN and len(levels) > 1:
                expr, depth = levels.pop().close()
                at += 1
                continue
            break
        if at == end:
            return levels[0].close()[0]
        if tokens[at].token_type is Kind.OR:
            levels[-1].choose()
        elif tokens[at].token_type is not Kind.AND:
            fail(f"did not expect {tokens[at].text!r}", at)
        at += 1


def _brackets(tokens: Sequence[Token], fail: Callable[[str, int], NoReturn]) -> tuple[dict[int, int], set[int]]:
    """Where each opening bracket is closed, and which hold a comma; ``CASE`` and its ``END`` are brackets too."""
    from sqlglot import TokenType as Kind

    closing = {Kind.R_PAREN: Kind.L_PAREN, Kind.R_BRACKET: Kind.L_BRACKET, Kind.R_BRACE: Kind.L_BRACE}
    opening = {*closing.values(), Kind.CASE}
    ends: dict[int, int] = {}
    listed: set[int] = set()
    waiting: list[int] = []
    for place, token in enumerate(tokens):
        kind = token.token_type
        if kind in opening:
            waiting.append(place)
        elif kind is Kind.COMMA and waiting:
            listed.add(waiting[-1])
        elif kind is Kind.END and waiting and tokens[waiting[-1]].token_type is Kind.CASE:
            ends[waiting.pop()] = place
        elif kind in closing:
            if not waiting or tokens[waiting[-1]].token_type is not closing[kind]:
                fail(f"nothing is open that {token.text!r} closes", place)
            ends[waiting.pop()] = place
    if waiting:
        fail(f"{tokens[waiting[-1]].text!r} is not closed", waiting[-1])
    return ends, listed


def _is_group(tokens: Sequence[Token], at: int, ends: dict[int, int], listed: set[int]) -> bool:
    from sqlglot import TokenType as Kind

    after = ends[at] + 1
    if after < len(tokens) and tokens[after].token_type not in (Kind.AND, Kind.OR, Kind.R_PAREN):
        return False
    return at not in listed and tokens[at + 1].token_type not in (Kind.SELECT, Kind.WITH, Kind.VALUES, Kind.R_PAREN)


def _end_of_piece(tokens: Sequence[Token], at: int, ends: dict[int, int]) -> int:
    """Where the piece that begins at a token ends: at and, or, or the end of the parenthesis around it."""
    from sqlglot import TokenType as Kind

    ranges = 0
    while at < len(tokens):
        kind = tokens[at].token_type
        if at in ends:
            at = ends[at]
        elif kind is Kind.BETWEEN:
            ranges += 1
        elif kind is Kind.AND and ranges:
            ranges -= 1
        elif kind in (Kind.AND, Kind.OR, Kind.R_PAREN):
            break
        at += 1
    return at


def nesting(tokens: Sequence[Token]) -> int:
    """How deep brackets are nested."""
    from sqlglot import TokenType as Kind

    step = {Kind.L_PAREN: 1, Kind.L_BRACKET: 1, Kind.L_BRACE: 1, Kind.CASE: 1}
    step |= {Kind.R_PAREN: -1, Kind.R_BRACKET: -1, Kind.R_BRACE: -1, Kind.END: -1}
    depth = deepest = 0
    for token in tokens:
        depth += step.get(token.token_type, 0)
        deepest = max(deepest, depth)
    return deepest
