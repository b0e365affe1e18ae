"""The command line: what commands write, and the exit statuses by which scripts tell what became of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lancelet
from lancelet.cli.main import main
from lancelet.errors import Conflict, Corrupt


@pytest.fixture
def table(tmp_path: Path) -> str:
    place = str(tmp_path / "t")
    lancelet.write_dataset(pa.table({"id": range(10), "name": ["a", None] * 5}), place, max_rows_per_file=2)
    lancelet.write_dataset(pa.table({"id": [10], "name": ["long\n" * 99]}), place, mode="append")
    lancelet.dataset(place).delete("id = 0")
    return place


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    assert main(arguments) == 0
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["count"], ["10"]),
        (["count", "--filter", "name is null"], ["5"]),
        (["count", "--version", "1"], ["10"]),
        (["schema"], ["column  type    null", "id      int64    yes", "name    string   yes"]),
        (["head", "-n", "2", "--columns", "id,name"], ["id  name", "1   null", "2   a"]),
        (["head", "--filter", "id > 9"], ["id  name", f"10  {'long ' * 11}lo..."]),
    ],
)
def test_a_table_is_looked_at(
    table: str, capsys: pytest.CaptureFixture[str], arguments: list[str], lines: list[str]
) -> None:
    assert said(capsys, arguments[0], table, *arguments[1:]) == lines


def test_versions_files_and_pages_are_listed(table: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert [line.split()[0] for line in said(capsys, "versions", table)] == ["version", "1", "2", "3"]
    files = said(capsys, "files", table)
    assert [line.split()[:3] for line in files[1:3]] == [["0", "2", "1"], ["1", "2", "0"]]
    assert len(files) == 7
    pages = said(capsys, "pages", table, "--fragment", "5")
    assert [line.split()[0] for line in pages[2:]] == ["id", "name"]
    assert said(capsys, "pages", f"{table}/data/{files[1].split()[-1]}")[2].split()[0] == "id"


def test_a_table_is_compacted_and_cleaned_up_and_the_doctor_says_so(
    table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert any("lancelet compact" in line for line in said(capsys, "doctor", table)) is False
    assert said(capsys, "compact", table) == ["6 fragments became 1"]
    told = said(capsys, "cleanup", table, "--older-than-hours", "0", "--dry-run")
    assert told[0].startswith("4 versions and ")
    assert told[0].endswith("would be removed")
    assert len(lancelet.dataset(table).versions()) == 5
    assert said(capsys, "cleanup", table, "--older-than-hours", "0") == [told[0].replace("would be removed", "removed")]
    assert len(lancelet.dataset(table).versions()) == 1
    assert said(capsys, "doctor", table)[-1] == "advice     none: all is well"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["count", "memory://no/such"], 3, "lancelet: "),
        (["head", "{table}", "-n", "-1"], 2, "--rows is -1, expected at least 0"),
        (["count", "{table}", "--filter", "nope = 1"], 2, "nope"),
        (["pages", "{table}", "--fragment", "77"], 3, "there is no such fragment"),
        (["schema", "{table}", "--storage-option", "x"], 2, "'x' is no option; write NAME=VALUE"),
        (["run", "/no/such.yml"], 3, "there is no declaration of a pipeline"),
        (["run", __file__], 2, "the declaration is no YAML"),
    ],
)
def test_what_goes_wrong_is_one_line_and_a_status(
    table: str, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, message: str
) -> None:
    assert main([item.format(table=table) for item in arguments]) == status
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(("error", "status"), [(Conflict(), 4), (Corrupt("x"), 1)])
def test_other_errors_have_statuses_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, status: int
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("lancelet.cli.tables.dataset", fail)
    assert main(["count", "t"]) == status
    assert capsys.readouterr().err.startswith("lancelet: ")


def test_wrong_usage_is_status_2() -> None:
    with pytest.raises(SystemExit) as caught:
        main(["no-such-command"])
    assert caught.value.code == 2


def test_the_command_starts_without_what_it_does_not_need() -> None:
    code = "import sys, lancelet.cli.main as cli\ncli._parser().format_help()\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert sorted({"pyspark", "yaml", "pyarrow.dataset", "obstore", "pandas"} & set(loaded)) == []
