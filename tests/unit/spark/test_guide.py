"""The guide to tables on Spark names every option of reads and writes."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from lancelet.spark.options import ReadOptions, WriteOptions

GUIDE = (Path(__file__).resolve().parents[3] / "docs" / "spark.md").read_text()
#: Said by columns of their names, or in what refuses a write without it.
ELSEWHERE = {"with_row_id", "with_row_address", "choices", "copy"}


@pytest.mark.parametrize(
    ("heading", "kind"), [("Options of a read", ReadOptions), ("Options of a write", WriteOptions)]
)
def test_every_option_is_in_the_guide(heading: str, kind: type) -> None:
    told = set(re.findall(r"`(\w+)`", GUIDE.split(f"## {heading}")[1].split("\n## ")[0]))
    assert {item.name for item in fields(kind)} - ELSEWHERE - told == set()
