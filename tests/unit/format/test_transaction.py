"""Transactions: every operation survives being written; old forms are understood, new ones are told apart."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from lancelet.errors import Corrupt, InvalidInput, Unsupported
from lancelet.format import operations as do
from lancelet.format.fields import Field, Schema
from lancelet.format.fragments import DataFile, Fragment
from lancelet.format.indexes import IndexDetails, IndexFile, IndexMetadata
from lancelet.format.manifest import BasePath
from lancelet.format.protos import table_pb2
from lancelet.format.protos import transaction_pb2 as wire
from lancelet.format.transaction import COMMIT_MESSAGE, Transaction, parse_transaction, write_transaction

FRAGMENTS = (Fragment(1, (DataFile("a.lance", (0,), (0,), 2, 2),), 5), Fragment(2, physical_rows=6))
SCHEMA = Schema((Field("a", "int64"), Field("b", "string")), {"k": "v"}).with_ids()
INDEX = IndexMetadata(UUID(int=3), "i", (0,), 2, b"\x3a", IndexDetails("/x.Y", b"1"), 1)
CHANGE = do.MapUpdate((("a", "1"), ("b", None), ("c", "")), replace=True)

OPERATIONS: list[do.Operation] = [
    do.Append(FRAGMENTS),
    do.Append(()),
    do.Delete(FRAGMENTS, (3, 1 << 40), "a > 1"),
    do.Overwrite(FRAGMENTS, SCHEMA, {"a": "1"}, (BasePath(0, "/b", name="n"),)),
    do.CreateIndex((INDEX,), (INDEX,)),
    do.Rewrite(
        (do.RewriteGroup(FRAGMENTS[:1], FRAGMENTS), do.RewriteGroup((), FRAGMENTS)),
        (do.RewrittenIndex(UUID(int=1), UUID(int=2), IndexDetails("/x.Y"), 3, (IndexFile("p", 4),)),),
    ),
    do.Rewrite((), (do.RewrittenIndex(UUID(int=1), UUID(int=2)),)),
    do.Merge(FRAGMENTS, SCHEMA, preserves_nullability=True),
    do.Restore(7),
    do.ReserveFragments(3),
    do.Update(
        (1,), FRAGMENTS, FRAGMENTS, (2, 3), (0,), do.UpdateMode.REWRITE_COLUMNS,
        do.KeyFilter((0, 1), do.ExactKeys((5, (1 << 64) - 1))), {1: b"\x3a"}, {2: (1, 2)}, (b"\x10\x01",),
    ),
    do.Update(inserted_rows=do.KeyFilter((0,), do.BloomKeys(b"\x01", 8, 10, 0.5))),
    do.Update(inserted_rows=do.KeyFilter((), do.ExactKeys(()))),
    do.Update(inserted_rows=do.KeyFilter((), None)),
    do.Project(replace(SCHEMA, metadata={}), preserves_nullability=True),
    do.UpdateConfig(CHANGE, do.MapUpdate(), CHANGE, {0: CHANGE, 5: do.MapUpdate()}),
    do.UpdateConfig(),
    do.DataReplacement((do.DataReplacementGroup(4, DataFile("n.lance", (1,), (0,))),)),
    do.UpdateMemWalState((b"\x10\x01", b"")),
    do.Clone(True, 5, "/there", "tag", "branch"),
    do.Clone(False, 5, "/there"),
    do.UpdateBases((BasePath(0, "/b", is_dataset_root=True),)),
    do.DataOverlay((do.DataOverlayGroup(1, (b"\x18\x01",)),)),
]  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda item: type(item).__name__)
def test_an_operation_survives_being_written(operation: do.Operation) -> None:
    transaction = Transaction(4, operation, properties={COMMIT_MESSAGE: "why", "x": ""}, tag="t")
    assert parse_transaction(write_transaction(transaction)) == transaction
    assert transaction.message == "why"


def test_every_kind_of_operation_is_tried() -> None:
    assert {type(item) for item in OPERATIONS} == set(do.Operation.__args__) - {do.Unknown}
    numbers = [item.number for item in wire.Transaction.DESCRIPTOR.oneofs_by_name["operation"].fields]
    assert numbers == list(range(100, 116))


def test_two_transactions_are_never_the_same() -> None:
    assert Transaction(1, do.Restore(1)).uuid != Transaction(1, do.Restore(1)).uuid


def test_an_operation_from_the_future_is_unknown_and_kept() -> None:
    # Field 116 with a message of two bytes, and field 7 with the number 1.
    new, other = b"\xa2\x07\x02\x08\x01", b"\x38\x01"
    data = wire.Transaction(read_version=3, uuid="u").SerializeToString() + other + new
    transaction = parse_transaction(data)
    assert isinstance(transaction.operation, do.Unknown)
    assert transaction.operation.number == 116
    assert write_transaction(transaction) == data


def test_a_transaction_without_operation_is_unknown_too() -> None:
    assert parse_transaction(wire.Transaction(uuid="u").SerializeToString()).operation == do.Unknown(0)


def test_fields_from_the_future_beside_a_known_operation_are_kept() -> None:
    data = write_transaction(Transaction(1, do.Restore(2), uuid="u")) + b"\xc0\x0c\x01"
    transaction = parse_transaction(data)
    assert transaction.operation == do.Restore(2)
    assert write_transaction(transaction) == data


def test_a_rewrite_without_groups_as_first_written_is_one_group() -> None:
    old = wire.Rewrite(old_fragments=[table_pb2.Fragment(id=1)], new_fragments=[table_pb2.Fragment(id=2)])
    found = parse_transaction(wire.Transaction(rewrite=old).SerializeToString()).operation
    assert found == do.Rewrite((do.RewriteGroup((Fragment(1),), (Fragment(2),)),))


def test_config_changes_as_first_written_are_changes_of_mappings() -> None:
    old = wire.UpdateConfig(upsert_values={"a": "1"}, delete_keys=["b"], schema_metadata={"s": "2"})
    old.field_metadata[3].metadata["f"] = "4"
    found = parse_transaction(wire.Transaction(update_config=old).SerializeToString()).operation
    assert found == do.UpdateConfig(
        config=do.MapUpdate((("a", "1"), ("b", None))),
        schema_metadata=do.MapUpdate((("s", "2"),), replace=True),
        field_metadata={3: do.MapUpdate((("f", "4"),), replace=True)},
    )


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (do.MapUpdate((("a", None), ("c", "3"))), {"b": "2", "c": "3"}),
        (do.MapUpdate((("c", "3"),), replace=True), {"c": "3"}),
        (do.MapUpdate((("x", None),)), {"a": "1", "b": "2"}),
    ],
)
def test_a_mapping_is_changed(change: do.MapUpdate, expected: dict[str, str]) -> None:
    assert change.applied({"a": "1", "b": "2"}) == expected


@pytest.mark.parametrize(
    ("message", "error", "why"),
    [
        (
            wire.Transaction(
                data_replacement=wire.DataReplacement(replacements=[wire.DataReplacement.Group(fragment_id=1)])
            ),
            Corrupt,
            "has no file",
        ),
        (
            wire.Transaction(rewrite=wire.Rewrite(rewritten_indices=[wire.Rewrite.RewrittenIndex()])),
            Corrupt,
            "id of 0 bytes",
        ),
    ],
)
def test_an_operation_that_makes_no_sense_is_corrupt(
    message: wire.Transaction, error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why):
        parse_transaction(message.SerializeToString())


def test_an_update_of_unknown_mode_is_unsupported() -> None:
    update = wire.Update()
    update.MergeFromString(b"\x38\x09")
    with pytest.raises(Unsupported, match="mode 9"):
        parse_transaction(wire.Transaction(update=update).SerializeToString())


@pytest.mark.parametrize("operation", [do.Restore(-1), do.Delete((), (-1,)), "restore"])
def test_what_is_no_operation_cannot_be_written(operation: do.Operation) -> None:
    with pytest.raises(InvalidInput):
        write_transaction(Transaction(1, operation))
