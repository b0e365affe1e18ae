"""Syntax to typed trees: each kind of node that sqlglot's parser makes, bound to columns, types and functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.types as pat

from lancelet.errors import InvalidInput, Unsupported
from lancelet.expr import syntax
from lancelet.expr.folding import folded
from lancelet.expr.functions import known, lookup
from lancelet.expr.functions.arithmetic import calculated
from lancelet.expr.functions.casts import cast
from lancelet.expr.functions.comparisons import compared, one_of
from lancelet.expr.functions.conditional import case
from lancelet.expr.functions.logic import all_of, any_of, negated
from lancelet.expr.functions.membership import one_of_list
from lancelet.expr.grammar import GRAMMAR
from lancelet.expr.literal_lists import list_name
from lancelet.expr.literals import bytes_of_hex, fitted, number, text_as
from lancelet.expr.sql_types import sql_type
from lancelet.expr.tree import FALSE, TRUE, Call, Column, Expr, Literal
from lancelet.expr.types import is_list, plain

if TYPE_CHECKING:
    from lancelet.expr.scope import Scope

__all__ = ["Binder"]

#: A node of sqlglot's; its classes differ between releases, and only names and arguments of them are looked at.
Node: TypeAlias = Any

_COMPARISONS = {"EQ": "=", "NEQ": "!=", "LT": "<", "LTE": "<=", "GT": ">", "GTE": ">="}
_ARITHMETIC = {"Add": "+", "Sub": "-", "Mul": "*", "Div": "/", "Mod": "%"}
_BITS = {
    "BitwiseAnd": "&",
    "BitwiseOr": "|",
    "BitwiseXor": "^",
    "BitwiseLeftShift": "<<",
    "BitwiseRightShift": ">>",
    "IntDiv": "div",
}
#: The types that numbers have where nothing is said of them.
_WRITTEN = (pa.int64(), pa.uint64(), pa.float64())
#: How deep syntax may be nested within what the parser was given at once.
_DEEPEST = 120


class Binder:
    """Binds nodes within one scope. Constant parts are computed at once."""

    def __init__(self, scope: Scope, lists: Sequence[pa.Array] = ()) -> None:
        self._scope = scope
        self._lists = lists
        self._depth = 0

    def bind(self, node: Node) -> Expr:
        """The typed tree of a node."""
        bind = _BINDERS.get(type(node).__name__)
        if bind is None:
            raise Unsupported(f"{syntax.written(node)!r} is not offered in expressions")
        self._depth += 1
        if self._depth > _DEEPEST:
            raise InvalidInput(f"the expression is nested more than {_DEEPEST} levels deep")
        try:
            return bind(self, node)
        finally:
            self._depth -= 1

    def root(self, node: Node) -> Expr:
        """The value of a whole text: a number beside a column is of the column's type, so that the result is."""
        inner = syntax.unwrapped(node)
        name = _ARITHMETIC.get(type(inner).__name__)
        if name is None or self._scope.statement:
            return self.bind(node)
        left, right = self.bind(inner.left), self.bind(inner.right)
        if isinstance(left, Column) and isinstance(right, Literal):
            right = _of_type(right, left.type)
        elif isinstance(right, Column) and isinstance(left, Literal):
            left = _of_type(left, right.type)
        else:
            return self.bind(node)
        if left.type == right.type and not pat.is_decimal(left.type) and not pat.is_temporal(left.type):
            return Call(name, (left, right), left.type)
        return self.call(name, [left, right])

    def call(self, name: str, arguments: Sequence[Expr]) -> Expr:
        """A function of arguments, computed at once where they are constant."""
        function = lookup(name)
        return folded(function.bind(function.name, arguments))


def _of_type(constant: Literal, kind: pa.DataType) -> Literal:
    if constant.type not in _WRITTEN:
        return constant
    found = fitted(constant.value, kind) if not pat.is_temporal(plain(kind)) else None
    return Literal(found.value) if found is not None and found.exact and found.value is not None else constant


def _column(self: Binder, node: Node) -> Expr:
    names = syntax.names_of(node)
    if names is None:
        base = self.bind(node.this)
        return _access(self, base, syntax.field_name(node))
    if len(names) == 1:
        place = list_name(names[0].text)
        if place is not None:
            values = self._lists[place]
            return Literal(pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)[0])
    found = self._scope.column(names)
    if found is not None:
        return found
    if len(names) == 1 and not names[0].quoted and names[0].text.lower() in syntax.WITHOUT_PARENTHESES:
        return self.call(names[0].text.lower(), [])
    return self._scope.unknown(names)


def _access(self: Binder, base: Expr, name: str) -> Expr:
    return self.call("get_field", [base, Literal(pa.scalar(name))])


def _bracket(self: Binder, node: Node) -> Expr:
    base = self.bind(node.this)
    if len(node.expressions) != 1:
        raise InvalidInput(f"{syntax.written(node)!r} has {len(node.expressions)} indexes, expected one")
    index = node.expressions[0]
    if type(index).__name__ == "Slice":
        bounds = [index.this, index.expression, index.args.get("step")]
        given = [self.bind(bound) if bound is not None else None for bound in bounds]
        low = given[0] if given[0] is not None else Literal(pa.scalar(1))
        high = given[1] if given[1] is not None else Literal(pa.scalar(-1))
        step = [] if given[2] is None else [given[2]]
        return self.call("array_slice", [base, low, high, *step])
    key = self.bind(index)
    kind = plain(base.type)
    if pat.is_struct(kind):
        return self.call("get_field", [base, key])
    if pat.is_map(kind):
        return self.call("map_value", [base, key])
    if not is_list(kind):
        raise InvalidInput(f"{base.type} has no items, in {syntax.written(node)!r}")
    return self.call("array_element", [base, key])


def _literal(_: Binder, node: Node) -> Expr:
    return Literal(pa.scalar(node.this, pa.string())) if node.is_string else number(node.this)


def _negative(self: Binder, node: Node) -> Expr:
    inner = node.this
    if type(inner).__name__ == "Literal" and not inner.is_string:
        # Read with its sign: the least integer has no positive counterpart.
        return number(f"-{inner.this}")
    return self.call("negative", [self.bind(inner)])


def _arithmetic(self: Binder, node: Node) -> Expr:
    """A chain of calculations, from the left, without recursion."""
    chain = []
    while type(node).__name__ in _ARITHMETIC:
        chain.append(node)
        node = node.left
    result = self.bind(node)
    for each in reversed(chain):
        made = calculated(_ARITHMETIC[type(each).__name__], result, self.bind(each.right))
        result = folded(made)
    return result


def _beside(self: Binder, node: Node, other: pa.DataType) -> Expr:
    """One side of a comparison; a number beside decimals keeps all the digits that are written."""
    digits = syntax.digits_of(node)
    if digits is not None and pat.is_decimal(plain(other)) and not digits.lower().strip("+-0123456789."):
        exact = text_as(digits, pa.decimal256(76, 38)) if len(digits) <= 38 else None
        if exact is not None:
            return Literal(exact)
    return self.bind(node)


def _comparison(self: Binder, node: Node) -> Expr:
    name = _COMPARISONS[type(node).__name__]
    if type(node.expression).__name__ == "Any":
        return _any_item(self, name, node)
    left, right = self.bind(node.this), self.bind(node.expression)
    left = _beside(self, node.this, right.type) if isinstance(left, Literal) else left
    right = _beside(self, node.expression, left.type) if isinstance(right, Literal) else right
    return folded(compared(name, left, right))


def _any_item(self: Binder, name: str, node: Node) -> Expr:
    if name != "=":
        raise Unsupported(f"{syntax.written(node)!r}: ANY is offered after =")
    return self.call("array_has", [self.bind(syntax.unwrapped(node.expression.this)), self.bind(node.this)])


def _between(self: Binder, node: Node) -> Expr:
    value = self.bind(node.this)
    low, high = (_beside(self, node.args[name], value.type) for name in ("low", "high"))
    return all_of([folded(compared(">=", value, low)), folded(compared("<=", value, high))])


def _in(self: Binder, node: Node) -> Expr:
    if node.args.get("query") is not None:
        return self._scope.subquery(node, self.bind(node.this))
    if node.args.get("unnest") is not None or node.args.get("field") is not None:
        raise Unsupported(f"{syntax.written(node)!r} is not offered in expressions")
    value = self.bind(node.this)
    items = [_beside(self, item, value.type) for item in node.expressions]
    if not items:
        raise InvalidInput("the list after IN is empty, expected values")
    if len(items) == 1 and isinstance(items[0], Literal) and syntax.is_cut_list(node.expressions[0]):
        return folded(one_of_list(value, items[0].value.values))
    return folded(one_of(value, items))


def _is(self: Binder, node: Node) -> Expr:
    value, what = self.bind(node.this), node.expression
    kind = type(what).__name__
    if kind == "Null":
        return self.call("is_null", [value])
    if kind == "Boolean":
        return self.call("is_true" if what.this else "is_false", [value])
    raise Unsupported(f"{syntax.written(node)!r} is not offered in expressions")


def _distinct(name: str) -> Callable[[Binder, Node], Expr]:
    return lambda self, node: self.call(name, [self.bind(node.this), self.bind(node.expression)])


def _chain(name: str, join: Callable[[Sequence[Expr]], Expr]) -> Callable[[Binder, Node], Expr]:
    def bind(self: Binder, node: Node) -> Expr:
        parts = []
        while type(node).__name__ == name:
            parts.append(node.right)
            node = node.left
        parts.append(node)
        return join([self.bind(part) for part in reversed(parts)])

    return bind


def _joined_text(self: Binder, node: Node) -> Expr:
    parts = []
    while type(node).__name__ == "DPipe":
        parts.append(node.expression)
        node = node.this
    parts.append(node)
    return self.call("||", [self.bind(part) for part in reversed(parts)])


def _like(name: str) -> Callable[[Binder, Node], Expr]:
    def bind(self: Binder, node: Node) -> Expr:
        found = self.call(name, [self.bind(node.this), self.bind(node.expression)])
        return negated(found) if node.args.get("negate") else found

    return bind


def _escaped(self: Binder, node: Node) -> Expr:
    like, escape = node.this, self.bind(node.expression)
    outer = type(like).__name__ == "Not"
    like = like.this if outer else like
    name = {"Like": "like", "ILike": "ilike", "SimilarTo": "similar_to"}.get(type(like).__name__)
    if name is None:
        raise InvalidInput(f"{syntax.written(node)!r}: ESCAPE follows a pattern of LIKE")
    found = self.call(name, [self.bind(like.this), self.bind(like.expression), escape])
    return negated(found) if outer or like.args.get("negate") else found


def _cast(self: Binder, node: Node) -> Expr:
    attempt = type(node).__name__ == "TryCast"
    kind = sql_type(node.args["to"], statement=self._scope.statement)
    inner = self.bind(node.this)
    if isinstance(inner, Literal) and pat.is_string(inner.type) and pat.is_temporal(kind) and inner.value.is_valid:
        try:
            return Literal(text_as(inner.value.as_py(), kind))
        except InvalidInput:
            if not attempt:
                raise
    return folded(cast(inner, kind, attempt=attempt))


def _case(self: Binder, node: Node) -> Expr:
    subject = node.this
    pairs = []
    for branch in node.args["ifs"]:
        test = self.bind(branch.this)
        if subject is not None:
            test = folded(compared("=", self.bind(subject), test))
        pairs.append((test, self.bind(branch.args["true"])))
    default = node.args.get("default")
    return folded(case(pairs, None if default is None else self.bind(default)))


def _anonymous(self: Binder, node: Node) -> Expr:
    name = str(node.this)
    special = self._scope.function(node)
    if special is not None:
        return special
    if any(type(argument).__name__ in ("Star", "Distinct", "Order") for argument in node.expressions):
        raise InvalidInput(f"{syntax.written(node)!r}: {name} takes values")
    if known(name) is None:
        lookup(name)
    return self.call(name.lower(), [self.bind(argument) for argument in node.expressions])


def _bitwise_not(self: Binder, node: Node) -> Expr:
    inner = self.bind(node.this)
    # pylance reads ~ before a condition as NOT.
    return negated(inner) if pat.is_boolean(plain(inner.type)) else self.call("~", [inner])


def _two(name: str) -> Callable[[Binder, Node], Expr]:
    return lambda self, node: self.call(name, [self.bind(node.this), self.bind(node.expression)])


_BINDERS: dict[str, Callable[[Binder, Node], Expr]] = {
    **GRAMMAR,
    "Column": _column,
    "Identifier": _column,
    "Dot": _column,
    "Bracket": _bracket,
    "Literal": _literal,
    "HexString": lambda _, node: Literal(bytes_of_hex(node.this)),
    "National": lambda _, node: Literal(pa.scalar(str(node.this))),
    "Boolean": lambda _, node: TRUE if node.this else FALSE,
    "Null": lambda _self, _node: Literal(pa.scalar(None)),
    "Paren": lambda self, node: self.bind(syntax.unwrapped(node)),
    "Neg": _negative,
    "And": _chain("And", all_of),
    "Or": _chain("Or", any_of),
    "Not": lambda self, node: negated(self.bind(node.this)),
    "In": _in,
    "Between": _between,
    "Is": _is,
    "NullSafeEQ": _distinct("is_not_distinct"),
    "NullSafeNEQ": _distinct("is_distinct"),
    "DPipe": _joined_text,
    "Concat": lambda self, node: self.call("||", [self.bind(each) for each in node.expressions]),
    "Like": _like("like"),
    "ILike": _like("ilike"),
    "SimilarTo": _like("similar_to"),
    "RegexpLike": _like("regexp_like"),
    "RegexpILike": _like("regexp_ilike"),
    "Escape": _escaped,
    "Cast": _cast,
    "TryCast": _cast,
    "Case": _case,
    "Anonymous": _anonymous,
    "BitwiseNot": _bitwise_not,
    "Subquery": lambda self, node: self._scope.subquery(node, None),
    "Exists": lambda self, node: self._scope.subquery(node, None),
    "Window": lambda self, node: self._scope.window(node),
    "Filter": lambda self, node: self._scope.filtered(node),
    **{name: _two(function) for name, function in _BITS.items()},
    **dict.fromkeys(_COMPARISONS, _comparison),
    **dict.fromkeys(_ARITHMETIC, _arithmetic),
}
