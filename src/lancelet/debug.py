"""Looking inside: what a manifest, a schema, a fragment or a transaction says, field by field, as text."""

from __future__ import annotations

from dataclasses import replace
from pprint import pformat

from lancelet.dataset.core import DatasetCore
from lancelet.dataset.fragments.convert import to_stored
from lancelet.dataset.fragments.metadata import FragmentMetadata
from lancelet.format.fragment_list import Fragments
from lancelet.table.snapshot import open_snapshot

__all__ = ["format_fragment", "format_manifest", "format_schema", "list_transactions"]

_WIDTH = 120


def format_schema(dataset: DatasetCore) -> str:
    """The fields of a dataset with all that is stored of them.

    >>> import lancelet, pyarrow as pa
    >>> dataset = lancelet.write_dataset(pa.table({"x": [1]}), "memory://debugged")
    >>> "logical_type='int64'" in format_schema(dataset)
    True
    """
    return pformat(dataset.snapshot.schema, width=_WIDTH, sort_dicts=False)


def format_manifest(dataset: DatasetCore) -> str:
    """All that the dataset's version consists of."""
    manifest = dataset.snapshot.manifest
    # The fragments, which are a list of their own kind, come last.
    head = pformat(replace(manifest, fragments=Fragments()), width=_WIDTH, sort_dicts=False)
    fragments = [pformat(item, width=_WIDTH) for item in manifest.fragments]
    return "\n".join([head, f"{len(fragments)} fragments", *fragments])


def format_fragment(fragment: FragmentMetadata, dataset: DatasetCore) -> str:
    """What a manifest says of a fragment, with the fields that each of its files holds."""
    stored = to_stored(fragment)
    names = {item.id: item.name for item in dataset.snapshot.schema.walk()}
    held = [
        f"{file.path}: {', '.join(names.get(number, f'field {number}') for number in file.fields)}"
        for file in stored.files
    ]
    return "\n".join([pformat(stored, width=_WIDTH), *held])


def list_transactions(dataset: DatasetCore, max_transactions: int = 10) -> list[str]:
    """What made the last so many versions up to the dataset's own, that first.

    >>> import lancelet, pyarrow as pa
    >>> dataset = lancelet.write_dataset(pa.table({"x": [1]}), "memory://debugged-history")
    >>> len(list_transactions(dataset)), list_transactions(dataset)[0].startswith("Transaction(read_version=0")
    (1, True)
    """
    here = dataset.snapshot
    found = []
    for version in range(here.version, max(here.version - max_transactions, 0), -1):
        snapshot = here if version == here.version else open_snapshot(here.store, version=version)
        transaction = snapshot.transaction()
        if transaction is not None:
            found.append(pformat(transaction, width=_WIDTH, sort_dicts=False))
    return found
