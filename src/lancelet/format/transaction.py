"""Transactions: what a commit did, from which version, for those who commit at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import uuid4

from lancelet.format.operation_parse import read_operation
from lancelet.format.operation_write import write_operation
from lancelet.format.operations import Operation, Unknown
from lancelet.format.preserve import put_unknown, storable, unknown_numbers, unknown_of
from lancelet.format.protos import transaction_pb2 as wire
from lancelet.format.wire import parse_message, write_message

__all__ = ["COMMIT_MESSAGE", "Transaction", "parse_transaction", "write_transaction"]

#: The property that holds what a user said about a commit.
COMMIT_MESSAGE = "__lance_commit_message"
_FIRST_OPERATION = 100


@dataclass(frozen=True, slots=True)
class Transaction:
    """One commit. ``read_version`` is the version it was worked out from, 0 for a table that was not there.

    >>> from lancelet.format.operations import Restore
    >>> transaction = Transaction(5, Restore(2))
    >>> parse_transaction(write_transaction(transaction)) == transaction
    True
    """

    read_version: int
    operation: Operation
    uuid: str = field(default_factory=lambda: str(uuid4()))
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    tag: str = ""
    unknown: bytes = b""

    @property
    def message(self) -> str | None:
        """What the user said about the commit."""
        return self.properties.get(COMMIT_MESSAGE)


def parse_transaction(data: bytes | memoryview) -> Transaction:
    """The transaction that the bytes of a message describe. An operation nobody here knows is :class:`Unknown`."""
    message = parse_message(wire.Transaction, data, "transaction")
    unknown = unknown_of(message)
    operation = read_operation(message)
    if operation is None:
        # With no operation at all, number 0, it may have done anything as well.
        numbers = [number for number in unknown_numbers(message) if number >= _FIRST_OPERATION]
        operation, unknown = Unknown(max(numbers, default=0), unknown), b""
    return Transaction(
        read_version=message.read_version,
        operation=operation,
        uuid=message.uuid,
        properties=dict(message.transaction_properties),
        tag=message.tag,
        unknown=unknown,
    )


def write_transaction(transaction: Transaction) -> bytes:
    """The bytes of the message that describes a transaction: a ``.txn`` file, or a section of a manifest's file."""
    with storable(f"transaction {transaction.uuid}"):
        message = write_operation(transaction.operation)
        message.read_version = transaction.read_version
        message.uuid = transaction.uuid
        message.tag = transaction.tag
        message.transaction_properties.update(transaction.properties)
    put_unknown(message, transaction.unknown)
    return write_message(message)
