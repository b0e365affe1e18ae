"""The exception tree: one class per outcome, its builtins, its places, and its way through pickle."""

from __future__ import annotations

import pickle

import pytest

from lancelet import errors
from lancelet.errors import Conflict, Corrupt, LanceletError, NotFound

KINDS = [getattr(errors, name) for name in errors.__all__ if name != "LanceletError"]
BUILTINS = {
    "AlreadyExists": (FileExistsError, ValueError),
    "Conflict": (OSError,),
    "Corrupt": (OSError, ValueError),
    "InvalidInput": (ValueError, OSError),
    "NotFound": (FileNotFoundError, ValueError),
    "OverBudget": (MemoryError,),
    "Storage": (OSError,),
    "Unsupported": (NotImplementedError, ValueError),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_outcome_is_also_the_builtins_that_users_catch(kind: type[LanceletError]) -> None:
    for builtin in (LanceletError, *BUILTINS[kind.__name__]):
        with pytest.raises(builtin, match="something happened"):
            raise kind("something happened")


@pytest.mark.parametrize("kind", KINDS)
def test_each_error_crosses_processes_with_all_it_knows(kind: type[LanceletError]) -> None:
    facts = {
        "uri": "s3://b/t.lance",
        "version": 7,
        "column": "a.b",
        "fragment": 2,
        "page": 3,
        "byte_range": (10, 20),
        "retryable": True,
        "hint": "try again",
    }
    error = kind("it broke", **facts)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert {name: getattr(again, name) for name in facts} == facts
    assert str(again) == str(error)


def test_the_text_says_what_then_where_then_what_to_do() -> None:
    error = Corrupt("offset 9 is past the end", uri="a", version=1, fragment=2, column="c", page=0, byte_range=(4, 8))
    assert str(error) == "offset 9 is past the end [uri=a, version=1, fragment=2, column=c, page=0, bytes 4..12]"
    assert str(NotFound("no table", hint="check the path")) == "no table; check the path"
    assert str(Conflict("plain")) == "plain"


def test_where_adds_what_is_missing_and_keeps_what_is_known() -> None:
    error = Corrupt("bad", column="inner", page=0).where(column="outer", page=5, uri="a")
    assert (error.column, error.page, error.uri) == ("inner", 0, "a")


def test_where_refuses_a_fact_that_no_error_has() -> None:
    with pytest.raises(TypeError, match="colum"):
        Corrupt("bad").where(colum="a")


def test_retryable_is_a_property_of_the_kind_that_one_error_may_change() -> None:
    assert not Conflict("a").retryable
    assert Conflict("a", retryable=True).retryable
    assert not Conflict("b").retryable
