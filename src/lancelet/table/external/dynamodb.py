"""The manifest store in DynamoDB, in tables that pylance uses too.

base_uri   string, partition key    the table's folder in the bucket
version    number, sort key
path       string                   the manifest's key in the bucket
size       number
e_tag      string, may be missing
committer  string                   who wrote the item
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol, cast

from lancelet.errors import AlreadyExists, Corrupt, InvalidInput, LanceletError, NotFound, Storage, Unsupported
from lancelet.format.names import DETACHED
from lancelet.table.external.contract import ManifestRecord

__all__ = ["DynamoManifestStore"]

_KEYS = {"HASH": "base_uri", "RANGE": "version"}
_COMMITTER = "lancelet"
_CLIENTS = 32
#: boto3's names of settings, and those that storage options and the environment may have for them, best first.
_SETTINGS = {
    "endpoint_url": ("dynamodb_endpoint",),
    "region_name": ("aws_region", "region", "aws_default_region", "default_region"),
    "aws_access_key_id": ("aws_access_key_id", "access_key_id"),
    "aws_secret_access_key": ("aws_secret_access_key", "secret_access_key"),
    "aws_session_token": ("aws_session_token", "session_token", "aws_token", "token"),
}
#: The environment's keys and roles are boto3's business; these two it would not find by pylance's names.
_FROM_ENVIRONMENT = ("endpoint_url", "region_name")
_RETRYABLE = ("ThrottlingException", "ProvisionedThroughputExceededException", "RequestLimitExceeded",
              "InternalServerError", "ServiceUnavailable", "TransactionInProgressException")  # fmt: skip

Attribute = dict[str, str]
Item = dict[str, Attribute]


class _Client(Protocol):
    """What is used of boto3's client."""

    def get_item(self, **request: object) -> dict[str, object]: ...

    def put_item(self, **request: object) -> dict[str, object]: ...

    def query(self, **request: object) -> dict[str, object]: ...

    def delete_item(self, **request: object) -> dict[str, object]: ...

    def describe_table(self, **request: object) -> dict[str, dict[str, list[dict[str, str]]]]: ...


@dataclass(frozen=True, slots=True)
class DynamoManifestStore:
    """Records in a DynamoDB table. Reads are consistent; needs the extra ``dynamodb``."""

    table: str
    #: What boto3's client is made with; some of it secret.
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @staticmethod
    def of(table: str, storage_options: Mapping[str, str], environment: Mapping[str, str]) -> DynamoManifestStore:
        """By the storage options that pylance takes, keys in any case; what they leave open boto3 looks for itself."""
        given = {key.lower(): text for key, text in storage_options.items() if text}
        around = {key.lower(): text for key, text in environment.items() if text}
        found = {}
        for setting, names in _SETTINGS.items():
            places = (given, around) if setting in _FROM_ENVIRONMENT else (given,)
            texts = (place[name] for place in places for name in names if name in place)
            if text := next(texts, None):
                found[setting] = text
        return DynamoManifestStore(table, tuple(found.items()))

    def get(self, base: str, version: int) -> ManifestRecord | None:
        """The record of a version."""
        answer = self._ask("get_item", Key=_key(base, version), ConsistentRead=True)
        item = answer.get("Item")
        return None if item is None else self._record(cast(Item, item))

    def latest(self, base: str) -> ManifestRecord | None:
        """The record of the highest version."""
        items, _ = self._query(base, {"ScanIndexForward": False, "Limit": 1})
        return self._record(items[0]) if items else None

    def put_if_absent(self, base: str, record: ManifestRecord) -> None:
        """Add the record of a version."""
        refused = AlreadyExists(f"{base!r} has a record of the version", uri=self._place, version=record.version)
        self._put(base, record, "attribute_not_exists(base_uri)", refused)

    def put_if_exists(self, base: str, record: ManifestRecord) -> None:
        """Replace the record of a version."""
        refused = NotFound(f"{base!r} has no record of the version", uri=self._place, version=record.version)
        self._put(base, record, "attribute_exists(base_uri)", refused)

    def delete(self, base: str) -> None:
        """Forget a table."""
        more: dict[str, object] = {}
        while True:
            items, last = self._query(base, more)
            for item in items:
                self._ask("delete_item", Key={name: item[name] for name in _KEYS.values()})
            if last is None:
                return
            more = {"ExclusiveStartKey": last}

    @property
    def _place(self) -> str:
        return f"dynamodb:{self.table}"

    def _put(self, base: str, record: ManifestRecord, condition: str, refused: LanceletError) -> None:
        item = {**_key(base, record.version), "path": {"S": record.path}, "committer": {"S": _COMMITTER}}
        if record.size is not None:
            item["size"] = {"N": str(record.size)}
        if record.e_tag is not None:
            item["e_tag"] = {"S": record.e_tag}
        self._ask("put_item", Item=item, ConditionExpression=condition, refused=refused)

    def _query(self, base: str, more: dict[str, object]) -> tuple[list[Item], object]:
        """Items of a table and where to go on. Versions beside the history, whose numbers are higher, are left out."""
        answer = self._ask(
            "query",
            KeyConditionExpression="base_uri = :base AND version < :detached",
            ExpressionAttributeValues={":base": {"S": base}, ":detached": {"N": str(DETACHED)}},
            ConsistentRead=True,
            more=more,
        )
        return cast(list[Item], answer.get("Items", [])), answer.get("LastEvaluatedKey")

    def _ask(
        self,
        verb: str,
        *,
        refused: LanceletError | None = None,
        more: Mapping[str, object] | None = None,
        **request: object,
    ) -> dict[str, object]:
        """What a request is answered; ``refused`` is raised where its condition does not hold."""
        client = _checked_client(self.table, self.settings, os.getpid())
        call = {"get_item": client.get_item, "put_item": client.put_item, "query": client.query,
                "delete_item": client.delete_item}[verb]  # fmt: skip
        from botocore.exceptions import BotoCoreError, ClientError  # type: ignore[import-untyped, unused-ignore]

        try:
            return call(TableName=self.table, **request, **(more or {}))
        except ClientError as error:
            if refused is not None and _code(error) == "ConditionalCheckFailedException":
                raise refused from None
            raise _failure(self.table, error) from error
        except BotoCoreError as error:
            raise _failure(self.table, error) from error

    def _record(self, item: Item) -> ManifestRecord:
        try:
            size = item["size"]["N"] if "N" in item.get("size", {}) else None
            return ManifestRecord(
                int(item["version"]["N"]),
                item["path"]["S"],
                None if size is None else int(size),
                item.get("e_tag", {}).get("S"),
            )
        except (KeyError, ValueError) as error:
            raise Corrupt(f"the item lacks its {error}, or it is of another type", uri=self._place) from None


def _key(base: str, version: int) -> Item:
    return {"base_uri": {"S": base}, "version": {"N": str(version)}}


@lru_cache(_CLIENTS)
def _checked_client(table: str, settings: tuple[tuple[str, str], ...], _process: int) -> _Client:
    """A client of this process, once the table is seen to have the keys it must have."""
    try:
        import boto3  # type: ignore[import-untyped, unused-ignore]
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        raise Unsupported("DynamoDB needs the package boto3", hint="pip install 'lancelet[dynamodb]'") from None
    place = f"dynamodb:{table}"
    try:
        # A session of its own: boto3's default one is not for several threads.
        client = cast(_Client, boto3.session.Session().client("dynamodb", **dict(settings)))
        found = client.describe_table(TableName=table)["Table"]["KeySchema"]
    except (BotoCoreError, ClientError) as error:
        raise _failure(table, error) from error
    keys = {key["KeyType"]: key["AttributeName"] for key in found}
    if keys != _KEYS:
        raise InvalidInput(f"the table has the keys {keys}, expected {_KEYS}", uri=place)
    return client


def _code(error: Exception) -> str:
    """The name of what DynamoDB refused."""
    answer = cast(dict[str, dict[str, str]], getattr(error, "response", {}))
    return answer.get("Error", {}).get("Code", "")


def _failure(table: str, error: Exception) -> LanceletError:
    from botocore.exceptions import HTTPClientError

    code = _code(error)
    place = f"dynamodb:{table}"
    if code == "ResourceNotFoundException":
        # Not NotFound, which would be taken for a version that is not there.
        return InvalidInput("there is no such DynamoDB table", uri=place, hint=f"make it with the keys {_KEYS}")
    retryable = code in _RETRYABLE or isinstance(error, HTTPClientError)
    return Storage(f"DynamoDB failed: {error}", uri=place, retryable=retryable)
