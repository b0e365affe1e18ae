"""Texts that every match of a regular expression has within it, as far as that is plain to see."""

from __future__ import annotations

__all__ = ["required_texts"]

#: After a backslash these stand for themselves.
_ESCAPED = frozenset(r"\.+*?()|[]{}^$-&~#/ ")
_QUANTIFIERS = frozenset("*+?{")


def required_texts(pattern: str) -> list[list[str]] | None:
    """For each alternative of a pattern the texts that its matches have within them; None where that is not clear.

    What stands in groups and classes is passed over; of what is repeated or optional only what must be there counts.

    >>> required_texts("^ab+c|x(yz)*[0-9]w$")
    [['ab', 'c'], ['x', 'w']]
    >>> required_texts("(?i)abc") is None
    True
    """
    alternatives: list[list[str]] = []
    texts: list[str] = []
    run = ""
    at = 0
    while at < len(pattern):
        one = pattern[at]
        if one == "|":
            alternatives.append([*texts, run])
            texts, run, at = [], "", at + 1
            continue
        step = _literal(pattern, at)
        if step is None:
            # A dot, an anchor, a class or a group: the text may go on with anything.
            stop = _behind(pattern, at)
            if stop is None:
                return None
            texts, run, at = [*texts, run], "", _behind_quantifier(pattern, stop)
            continue
        letter, stop = step
        if stop < len(pattern) and pattern[stop] in _QUANTIFIERS:
            texts.append(run + (letter if pattern[stop] == "+" else ""))
            run, at = "", _behind_quantifier(pattern, stop)
        else:
            run, at = run + letter, stop
    alternatives.append([*texts, run])
    return [[text for text in found if text] for found in alternatives]


def _literal(pattern: str, at: int) -> tuple[str, int] | None:
    """The character that a pattern asks for at a place, and where it goes on; None where it is no single one."""
    one = pattern[at]
    if one == "\\":
        escaped = pattern[at + 1 : at + 2]
        return (escaped, at + 2) if escaped in _ESCAPED and escaped else None
    return None if one in ".^$[(" else (one, at + 1)


def _behind(pattern: str, at: int) -> int | None:
    """Where a dot, an anchor, a class or a group ends; None where that is not clear, or it changes what follows."""
    one = pattern[at]
    if one == "\\":
        # Classes of one letter, and borders; others, such as \\x41 or \\pL, go on behind it.
        return at + 2 if pattern[at + 1 : at + 2] in {*"dDsSwWbBAz"} and pattern[at + 1 :] else None
    if one == "[":
        return _behind_class(pattern, at)
    if one != "(":
        return at + 1
    if pattern.startswith("(?", at) and not pattern.startswith("(?:", at):
        return None
    at += 1
    while at < len(pattern):
        if pattern[at] == ")":
            return at + 1
        if pattern[at] == "\\":
            at += 2
        elif pattern[at] in "[(":
            stop = _behind(pattern, at)
            if stop is None:
                return None
            at = stop
        else:
            at += 1
    return None


def _behind_class(pattern: str, at: int) -> int | None:
    """Where a class ends; None for one with classes within it."""
    at += 2 if pattern.startswith("[^", at) else 1
    # A bracket that comes first stands for itself.
    at += 1 if pattern.startswith("]", at) else 0
    while at < len(pattern):
        if pattern[at] == "]":
            return at + 1
        if pattern[at] == "[":
            return None
        at += 2 if pattern[at] == "\\" else 1
    return None


def _behind_quantifier(pattern: str, at: int) -> int:
    """Where quantifiers end."""
    while at < len(pattern) and pattern[at] in _QUANTIFIERS:
        stop = pattern.find("}", at) if pattern[at] == "{" else at
        at = len(pattern) if stop < 0 else stop + 1
    return at
