"""The SQL dialects, as sqlglot is told of them. Imported only when text is read: sqlglot takes a while to load."""

from __future__ import annotations

from sqlglot import TokenType, exp, parser, tokens
from sqlglot.dialects.dialect import Dialect

__all__ = ["FilterDialect", "StatementDialect"]

#: Functions with a grammar of their own; all others are read as a name and arguments.
_GRAMMAR = ("CAST", "EXTRACT", "OVERLAY", "POSITION", "SAFE_CAST", "SUBSTRING", "TRIM", "TRY_CAST")


class _Parser(parser.Parser):
    FUNCTIONS = {}  # noqa: RUF012 - sqlglot's own tables are plain dictionaries
    FUNCTION_PARSERS = {name: parser.Parser.FUNCTION_PARSERS[name] for name in _GRAMMAR}  # noqa: RUF012
    NO_PAREN_FUNCTIONS = {}  # noqa: RUF012
    NO_PAREN_FUNCTION_PARSERS = {  # noqa: RUF012
        **{name: parser.Parser.NO_PAREN_FUNCTION_PARSERS[name] for name in ("ANY", "CASE")},
        "MAP": lambda self: self._parse_map(),
    }
    RANGE_PARSERS = {  # noqa: RUF012
        **parser.Parser.RANGE_PARSERS,
        TokenType.TILDE: parser.binary_range_parser(exp.RegexpLike),
    }
    # ``a > 1 IS TRUE`` asks of the comparison.
    IS_PREDICATE_PRECEDENCE = parser.IsPredicatePrecedence.LOW

    def _parse_map(self) -> exp.Expr | None:
        """``MAP {'key': value}``, or the function of two lists."""
        if self._match(TokenType.L_BRACE, advance=False):
            return self.expression(exp.ToMap(this=self._parse_bracket()))
        if not self._match(TokenType.L_PAREN, advance=False):
            return None
        return self.expression(exp.Anonymous(this="map", expressions=self._parse_wrapped_csv(self._parse_assignment)))


_WORDS = {
    **tokens.Tokenizer.KEYWORDS,
    "==": TokenType.EQ,
    # Types that count bytes, not bits.
    "INT2": TokenType.SMALLINT,
    "INT4": TokenType.INT,
    "INT8": TokenType.BIGINT,
    "FLOAT4": TokenType.FLOAT,
    "FLOAT8": TokenType.DOUBLE,
}
_HEX: list[str | tuple[str, str]] = [("x'", "'"), ("X'", "'"), ("0x", ""), ("0X", "")]


class FilterDialect(Dialect):
    """Filters and computed columns: names between backticks, text between single or double quotes."""

    INDEX_OFFSET = 0

    class Tokenizer(tokens.Tokenizer):
        """Tokens of filters."""

        IDENTIFIERS = ["`"]  # noqa: RUF012
        QUOTES = ["'", '"']  # noqa: RUF012
        HEX_STRINGS = _HEX
        KEYWORDS = _WORDS

    Parser = _Parser


class StatementDialect(Dialect):
    """Statements: names between double quotes or backticks, text between single quotes."""

    INDEX_OFFSET = 0

    class Tokenizer(tokens.Tokenizer):
        """Tokens of statements."""

        IDENTIFIERS = ['"', "`"]  # noqa: RUF012
        QUOTES = ["'"]  # noqa: RUF012
        HEX_STRINGS = _HEX
        KEYWORDS = _WORDS

    Parser = _Parser
