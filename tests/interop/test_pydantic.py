"""Models of pydantic: their schemas, and the tables of their instances, are those of pylance."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from datetime import UTC, date, datetime
from enum import Enum
from pathlib import Path
from typing import Any, List, Optional  # noqa: UP035 - both ways of writing are tried

import lance
import lance.pydantic
import pyarrow as pa
import pydantic
import pytest

import lancelet
import lancelet.pydantic


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(Enum):
    LOW = 1
    HIGH = 2


class Mixed(Enum):
    ONE = 1
    TWO = "two"


class Place(pydantic.BaseModel):
    x: float
    name: Optional[str]  # noqa: UP045


ANNOTATIONS: dict[str, Any] = {
    "int": int,
    "float": float,
    "str": str,
    "bool": bool,
    "bytes": bytes,
    "date": date,
    "datetime": datetime,
    "optional": Optional[int],  # noqa: UP045
    "union": int | None,
    "list": list[int],
    "old list": List[str],  # noqa: UP006
    "list of optional": list[int | None],
    "optional list": list[float] | None,
    "nested list": list[list[bytes]],
    "tuple": tuple[int, ...],
    "model": Place,
    "optional model": Place | None,
    "list of models": list[Place],
    "text": Colour,
    "number": Level,
    "mixed": Mixed,
    "optional enumeration": Colour | None,
}


def model_of(annotation: object, default: object = ...) -> type[pydantic.BaseModel]:
    made: type[pydantic.BaseModel] = pydantic.create_model("Made", field=(annotation, default))
    return made


@pytest.mark.parametrize("name", ANNOTATIONS)
def test_the_schema_of_an_annotation_is_that_of_pylance(name: str) -> None:
    for default in (..., None):
        model = model_of(ANNOTATIONS[name], default)
        found = lancelet.pydantic.pydantic_to_schema(model)
        assert found.equals(lance.pydantic.pydantic_to_schema(model), check_metadata=True)
        field = model.model_fields["field"]
        assert lancelet.pydantic.is_nullable(field) == lance.pydantic.is_nullable(field)


@pytest.mark.parametrize("name", ["Vector", "MultiVector"])
@pytest.mark.parametrize("nullable", [True, False])
def test_vectors_are_those_of_pylance(name: str, nullable: bool) -> None:
    kinds = [getattr(module.pydantic, name)(3, pa.float16(), nullable) for module in (lancelet, lance)]
    models = [model_of(kind) for kind in kinds]
    ours, theirs = (
        module.pydantic.pydantic_to_schema(model) for module, model in zip((lancelet, lance), models, strict=True)
    )
    assert ours == theirs
    value = [1.0, 2.0, 3.0] if name == "Vector" else [[1.0, 2.0, 3.0]]
    made = [model(field=value).field for model in models]
    assert made[0] == made[1] == value
    assert repr(made[0]) == repr(made[1])
    assert kinds[0].dim() == kinds[1].dim() == 3
    assert issubclass(kinds[0], lancelet.pydantic.FixedSizeListMixin)
    for model in models:
        with pytest.raises(pydantic.ValidationError):
            model(field=[1.0] if name == "Vector" else [[1.0]])


@pytest.mark.parametrize("annotation", [dict[str, int], list, int | str, complex, tuple[int, str]])
def test_annotations_that_no_type_stands_for_are_refused(annotation: object) -> None:
    with pytest.raises(TypeError, match="no Arrow type"):
        lancelet.pydantic.pydantic_to_schema(model_of(annotation))


class SomeItem(pydantic.BaseModel):
    id: int
    at: datetime = pydantic.Field(json_schema_extra={"tz": "UTC"})
    colour: str | None = None
    place: Place | None = None
    words: list[str] = []


ITEMS = [
    SomeItem(id=1, at=datetime(2026, 1, 2, tzinfo=UTC)),
    SomeItem(id=2, at=datetime(2026, 1, 3, tzinfo=UTC), colour="red", place=Place(x=1.5, name=None), words=["a"]),
]


def test_instances_are_written_as_pylance_writes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (lance, lancelet):
        made = module.LanceDataset.from_pydantic_model(SomeItem, ITEMS, tmp_path / module.__name__)
        assert isinstance(made, module.LanceDataset)
        module.LanceDataset.from_pydantic_model(SomeItem, ITEMS[:1], tmp_path / module.__name__, mode="append")
    found, expected = lancelet.dataset(tmp_path / "lancelet"), lance.dataset(tmp_path / "lance")
    assert found.schema == expected.schema
    assert found.to_table() == expected.to_table()
    assert lancelet.pydantic.get_extras(SomeItem.model_fields["at"], "tz") == "UTC"
    assert lancelet.pydantic.get_extras(SomeItem.model_fields["id"], "tz") is None
    monkeypatch.chdir(tmp_path)
    assert lancelet.LanceDataset.from_pydantic_model(SomeItem, ITEMS).uri.endswith("some_item")


def test_members_of_enumerations_are_their_values(tmp_path: Path) -> None:
    model = pydantic.create_model("Told", colour=(Colour, ...), levels=(list[Level], ...))
    made = lancelet.LanceDataset.from_pydantic_model(
        model, [model(colour=Colour.RED, levels=[Level.HIGH]), model(colour=Colour.BLUE, levels=[])], tmp_path / "t"
    )
    assert made.to_table().to_pylist() == [{"colour": "red", "levels": [2]}, {"colour": "blue", "levels": []}]


@pytest.mark.parametrize(
    ("model", "data", "kind"),
    [
        (int, ITEMS, TypeError),
        (SomeItem(id=1, at=datetime(2026, 1, 1, tzinfo=UTC)), ITEMS, TypeError),
        (SomeItem, iter(ITEMS), TypeError),
        (SomeItem, [*ITEMS, Place(x=1, name=None)], TypeError),
        (SomeItem, [], ValueError),
    ],
)
def test_what_is_no_list_of_the_model_is_refused_as_by_pylance(
    tmp_path: Path, model: Any, data: Any, kind: type[Exception]
) -> None:
    for module in (lance, lancelet):
        with pytest.raises(kind):
            module.LanceDataset.from_pydantic_model(model, data, tmp_path / "t")


def test_without_pydantic_the_extra_is_named() -> None:
    script = """
        import sys
        sys.modules["pydantic"] = None
        import lancelet
        try:
            lancelet.LanceDataset.from_pydantic_model(int, [1], "memory://absent")
        except lancelet.LanceletError as error:
            print(type(error).__name__, error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    assert "lancelet[pydantic]" in done.stdout, done.stderr


def test_merges_of_arrow_data_are_those_of_pylance(tmp_path: Path) -> None:
    rows, given = pa.table({"id": [1, 2, 3], "x": list("abc")}), pa.table({"id": [2, 9], "x": ["B", "Z"]})
    tables = []
    for module in (lance, lancelet):
        dataset = module.write_dataset(rows, tmp_path / module.__name__)

        def upsert(dataset: Any = dataset) -> Any:
            return dataset.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()

        assert upsert().execute_batches(given) == {
            "num_inserted_rows": 1,
            "num_updated_rows": 1,
            "num_deleted_rows": 0,
        }
        assert upsert().execute_uncommitted_batches(given)[1]["num_updated_rows"] == 2
        assert isinstance(upsert().analyze_plan_batches(given), str)
        with pytest.raises(TypeError):
            upsert().execute_batches(given.to_batches())
        assert module.dataset(tmp_path / module.__name__).version == 2
        tables.append(module.dataset(tmp_path / module.__name__).to_table().sort_by("id"))
    assert tables[0] == tables[1]
