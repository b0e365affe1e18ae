"""Where a remote URI points: the kind of service, the bucket and the folder, and what the URI itself settles."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote

from lancelet.errors import InvalidInput
from lancelet.storage.paths import check_path, split_uri

__all__ = ["REMOTE_SCHEMES", "Kind", "Location", "just_below", "parse_location", "whole_names"]

Kind = Literal["s3", "gcs", "azure", "http"]
#: Schemes that mean a remote store, and the kind of service behind each.
REMOTE_SCHEMES: dict[str, Kind] = {
    "s3": "s3",
    "s3a": "s3",
    "gs": "gcs",
    "gcs": "gcs",
    "az": "azure",
    "azure": "azure",
    "adl": "azure",
    "abfs": "azure",
    "abfss": "azure",
    "http": "http",
    "https": "http",
}
_SERVICE = {"s3": "bucket", "gcs": "bucket", "azure": "container", "http": "host"}


@dataclass(frozen=True, slots=True)
class Location:
    """A folder of a bucket. ``settings`` are the options that the URI itself implies, such as an account's name."""

    uri: str
    kind: Kind
    #: The bucket or container; for HTTP the scheme, host and port.
    bucket: str
    #: The folder within it, percent-decoded, without slashes around it.
    root: str
    settings: dict[str, str] = field(default_factory=dict)

    def key(self, path: str) -> str:
        """The object's full name in the bucket."""
        return f"{self.root}/{path}" if self.root else path


def parse_location(uri: str) -> Location:
    """Read a remote URI as pylance 14.0.2 does: the folder is percent-decoded, ``s3a`` and ``abfs`` are other names.

    A query, a fragment or a password is refused, not cut: it would be part of what errors and plans print.

    >>> parse_location("abfss://raw@account.dfs.core.windows.net/a%20b/")
    Location(uri='abfss://raw@account.dfs.core.windows.net/a b', kind='azure', bucket='raw', root='a b', \
settings={'account_name': 'account'})
    """
    scheme, rest = split_uri(uri)
    kind = REMOTE_SCHEMES.get(scheme)
    if kind is None:
        raise InvalidInput(f"{scheme}:// is not a remote store", hint=f"expected one of {', '.join(REMOTE_SCHEMES)}")
    authority, _, folder = rest.partition("/")
    _refuse_secrets(kind, scheme, authority, rest)
    if not authority or authority.startswith(("@", ":")):
        raise InvalidInput(f"the URI names no {_SERVICE[kind]}", uri=uri)
    bucket, settings = authority, {}
    if kind == "azure":
        bucket, mark, host = authority.partition("@")
        settings = _azure_host(uri, host) if mark else {}
    elif kind == "http":
        bucket = f"{scheme}://{authority}"
    elif bucket.endswith("--x-s3"):
        settings = {"s3_express": "true"}
    root = unquote(folder, errors="strict").rstrip("/")
    shown = f"{scheme}://{authority}"
    if root:
        check_path(shown, root)
        shown = f"{shown}/{root}"
    return Location(shown, kind, bucket, root, settings)


def just_below(prefix: str) -> str:
    """A name that sorts before every name with the prefix, and after as many others as can be.

    >>> just_below("folder/b"), just_below("folder/"), just_below("folder/0")
    ('folder/a~', '', 'folder')
    """
    head, last = prefix[:-1], prefix[-1:]
    below = chr(ord(last) - 1) if last and last.isascii() else ""
    if last in ("", "/"):
        return ""
    return f"{head}{below}~" if below.isalnum() else head.rstrip("/")


def whole_names(path: str) -> str:
    """The longest start of ``path`` that may name an object: what services take as the place to list from.

    >>> whole_names("a/b/"), whole_names("a//b"), whole_names("a/b")
    ('a/b', 'a', 'a/b')
    """
    names = path.split("/")
    valid = next((number for number, name in enumerate(names) if name in ("", ".", "..")), len(names))
    return "/".join(names[:valid])


def _azure_host(uri: str, host: str) -> dict[str, str]:
    """The options that ``container@host`` implies; ``host`` is an account's name, alone or with a domain."""
    account, _, domain = host.partition(".")
    if not account:
        raise InvalidInput("the URI names no storage account after '@'", uri=uri)
    settings = {"account_name": account}
    service, _, suffix = domain.partition(".")
    if suffix == "fabric.microsoft.com":
        settings["use_fabric_endpoint"] = "true"
    elif domain and (service not in ("dfs", "blob") or not suffix):
        raise InvalidInput(
            f"{host!r} is not the host of a storage account", uri=uri, hint="expected account.dfs.domain"
        )
    elif domain and suffix != "core.windows.net":
        settings["endpoint"] = f"https://{account}.blob.{suffix}"
    return settings


def _refuse_secrets(kind: Kind, scheme: str, authority: str, rest: str) -> None:
    """InvalidInput for the parts of a URI that may hold credentials; the message does not repeat them."""
    for mark, name in (("?", "query"), ("#", "fragment")):
        if mark in rest:
            hint = f"write the letter as %{ord(mark):02X}, and put credentials into storage_options"
            raise InvalidInput(
                f"a {scheme} URI cannot have a {name}", uri=f"{scheme}://{rest.split(mark)[0]}", hint=hint
            )
    if "@" in authority and (kind != "azure" or ":" in authority):
        raise InvalidInput(f"a {scheme} URI cannot hold a user or a password", hint="put them into storage_options")
