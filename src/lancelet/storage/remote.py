"""The remote store: S3, Google Cloud Storage, Azure and, for reading, HTTP, all through obstore."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import cast

from lancelet.config import Options, default_options
from lancelet.errors import AlreadyExists, InvalidInput, NotFound, Storage, Unsupported
from lancelet.events import emit
from lancelet.storage.paths import check_path, join_uri
from lancelet.storage.ranges import check_ranges, coalesce, end_of, past_end, slice_back
from lancelet.storage.remote_engine import Client, in_parallel
from lancelet.storage.remote_errors import CutShort, RangeRefused, translated
from lancelet.storage.remote_location import just_below, parse_location, whole_names
from lancelet.storage.remote_options import resolve_settings
from lancelet.storage.remote_patience import Patience
from lancelet.storage.remote_profile import with_profile
from lancelet.storage.remote_writer import PART_BYTES, PARTS_IN_FLIGHT, RemoteWriter
from lancelet.storage.store import Data, Entry, Range, Writer, as_bytes

__all__ = ["RemoteStore"]

#: Objects up to this size are put by one request.
_PUT_WHOLE = 64 * 2**20
#: S3 lists a thousand objects per request.
_PAGE = 1000
#: Names per bulk delete: S3 takes 1,000, Azure 256.
_DELETE_AT_ONCE = {"s3": 1000, "azure": 256, "gcs": 100, "http": 1}


class RemoteStore:
    """A folder of a bucket, named by an ``s3://``, ``gs://``, ``az://``, ``abfss://`` or ``http(s)://`` URI.

    ``storage_options`` take pylance's keys; what they leave open comes from the environment (``AWS_…``, ``AZURE_…``,
    ``GOOGLE_…``, then the profile in ``~/.aws``) of the process that makes the requests. Keys that mean nothing here
    are ignored, as pylance does, and reported by the event ``storage.option.ignored``.

    A pickle holds the URI, the options and **the storage options with their credentials**: executors need them.
    Nothing else shows them: not ``uri``, not ``repr``, no error. Clients are made on first use, one per process, also
    in forked children; threads may share a store.

    >>> RemoteStore("s3://bucket/table.lance", storage_options={"secret_access_key": "…", "access_key_id": "…"})
    RemoteStore('s3://bucket/table.lance')
    """

    def __init__(
        self, uri: str, *, storage_options: Mapping[str, str] | None = None, options: Options | None = None
    ) -> None:
        self._location = parse_location(uri)
        self._storage_options = dict(storage_options or {})
        self._options = options or default_options()
        self._client: Client | None = None
        self._secrets: tuple[str, ...] = ()
        # Resolved now only to refuse wrong options where they are given.
        settings = resolve_settings(self._location, self._storage_options, os.environ, self._options.retries)
        self._listed_out_of_order = (
            self._location.kind == "azure" or settings.config.get("s3_express", "").lower() == "true"
        )
        for key, meant in settings.ignored.items():
            emit("storage.option.ignored", uri=self.uri, key=key, nearest=meant)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self.uri, self._storage_options, self._options)

    def __repr__(self) -> str:
        return f"RemoteStore({self.uri!r})"

    @property
    def uri(self) -> str:
        """The folder, as a user would write it."""
        return self._location.uri

    def size(self, path: str) -> int:
        """Bytes in an object: one HEAD request."""
        key, client = self._key(path), self._connect()
        with self._translated("size", path):
            return cast(int, client.engine.head(client.store, key)["size"])

    def read(self, path: str, ranges: Sequence[Range]) -> list[memoryview]:
        """Ranges are coalesced into requests that run side by side, up to ``io_concurrency`` in this process."""
        key, options = self._key(path), self._options
        check_ranges(ranges, uri=self._name(path))
        plan = coalesce(ranges, gap=options.coalesce_gap, largest=options.largest_request)
        if not plan.requests:
            return slice_back(plan, [])
        client = self._connect()

        def fetch(request: Range) -> memoryview:
            with self._translated("read", path):
                answer = client.engine.get_range(client.store, key, start=request[0], length=request[1])
            view = memoryview(answer)  # type: ignore[arg-type]
            if len(view) < request[1]:
                raise RangeRefused("read: the answer is shorter than the range", uri=self._name(path))
            return view

        try:
            answers = in_parallel(fetch, plan.requests, concurrency=options.io_concurrency)
        except RangeRefused:
            size = self.size(path)
            for piece in ranges:
                if piece[1] and end_of(piece) > size:
                    raise past_end(piece, size, uri=self._name(path)) from None
            raise
        return slice_back(plan, answers)

    def read_all(self, path: str) -> memoryview:
        """A whole object, in one request."""
        key, client = self._key(path), self._connect()
        with self._translated("read_all", path):
            return memoryview(client.engine.get(client.store, key).bytes())  # type: ignore[attr-defined]

    def read_tail(self, path: str, length: int) -> tuple[memoryview, int]:
        """One request with a suffix range; two on Azure, which has none."""
        key = self._key(path)
        check_ranges([(0, length)], uri=self._name(path))
        if length and self._location.kind != "azure":
            client = self._connect()
            try:
                with self._translated("read_tail", path):
                    found = client.engine.get(client.store, key, options={"range": {"suffix": length}})
                    size = cast(int, found.meta["size"])  # type: ignore[attr-defined]
                    return memoryview(found.bytes()), size  # type: ignore[attr-defined]
            except RangeRefused:
                # An empty object has no suffix to give: servers refuse, or send it whole.
                if self.size(path):
                    raise
                return memoryview(b""), 0
        size = self.size(path)
        taken = min(length, size)
        return self.read(path, [(size - taken, taken)])[0], size

    def put(self, path: str, data: Data) -> None:
        """Write or replace an object: one request, or a multipart upload for one of more than 64 MiB."""
        key, view = self._target("put", path), as_bytes(data)
        client = self._connect()
        with self._translated("put", path):
            client.engine.put(
                client.store,
                key,
                view,
                use_multipart=len(view) > _PUT_WHOLE,
                chunk_size=PART_BYTES,
                max_concurrency=PARTS_IN_FLIGHT,
            )

    def put_if_absent(self, path: str, data: Data) -> None:
        """Write an object that must not exist, by a conditional put.

        After a failure whose outcome is open (a time-out, a 500) the put is repeated; where the object then exists,
        it is ours if it holds exactly ``data``. Contents that no other writer could have made, such as those with a
        transaction's id in them, are therefore never reported as somebody else's.
        """
        self._target("put_if_absent", path)
        view, patience = as_bytes(data), Patience(self._options.retries)
        unsure = False
        while True:
            try:
                return self._put_once(path, view)
            except AlreadyExists:
                if unsure and self.read_all(path) == view:
                    return None
                raise
            except Storage as error:
                patience.wait(error, "put_if_absent")
                unsure = True

    def writer(self, path: str) -> Writer:
        """Start writing an object. One of up to 12 MiB is put whole at close, a bigger one goes up in parts."""
        key = self._target("writer", path)
        client = self._connect()

        def put(content: bytearray) -> None:
            self.put(path, content)

        def put_parts(parts: Iterator[bytearray]) -> None:
            with self._translated("write", path):
                client.engine.put(
                    client.store,
                    key,
                    parts,
                    use_multipart=True,
                    chunk_size=PART_BYTES,
                    max_concurrency=PARTS_IN_FLIGHT,
                )

        return RemoteWriter(self._name(path), put, put_parts)

    def list_from(self, prefix: str, start_after: str = "") -> Iterator[Entry]:
        """Objects in byte order; pages are fetched as the iterator runs.

        Azure and S3 Express list in other orders than that of bytes, so there the whole listing is fetched and sorted.
        """
        if self._location.kind == "http":
            raise Unsupported("HTTP servers have no listing", uri=self.uri)
        found = self._resumed(prefix, start_after)
        if not self._listed_out_of_order:
            return found
        entries = {entry.path: entry for entry in found}
        return iter([entries[path] for path in sorted(entries)])

    def copy(self, source: str, target: str) -> None:
        """Copy within the store; no byte passes through this process."""
        key, goal, client = self._key(source), self._target("copy", target), self._connect()
        with self._translated("copy", source):
            client.engine.copy(client.store, key, goal)

    def delete(self, paths: Iterable[str]) -> None:
        """Remove objects in bulk requests."""
        keys = [(path, self._target("delete", path)) for path in paths]
        step = _DELETE_AT_ONCE[self._location.kind]
        batches = [keys[at : at + step] for at in range(0, len(keys), step)]
        in_parallel(self._delete, batches, concurrency=min(8, self._options.io_concurrency))

    def _delete(self, batch: Sequence[tuple[str, str]]) -> None:
        """Delete a batch by one request, which the engine does not repeat because it is a POST."""
        client, patience = self._connect(), Patience(self._options.retries)
        while True:
            try:
                with self._translated("delete", batch[0][0]):
                    return client.engine.delete(client.store, [key for _, key in batch])
            except NotFound:
                # Some service names the first object that is missing; whether it went on to the others is not said.
                if len(batch) > 1:
                    in_parallel(lambda item: self._delete([item]), batch, concurrency=1)
                return None
            except Storage as error:
                patience.wait(error, "delete")

    def _put_once(self, path: str, view: memoryview) -> None:
        client = self._connect()
        with self._translated("put_if_absent", path):
            client.engine.put(client.once, self._key(path), view, mode="create", use_multipart=False)

    def _resumed(self, prefix: str, start_after: str) -> Iterator[Entry]:
        """Entries in the service's order; a page that breaks off is asked again, or all where there is no order."""
        patience = Patience(self._options.retries)
        while True:
            try:
                for entry in self._matching(prefix, start_after):
                    yield entry
                    if not self._listed_out_of_order:
                        start_after = entry.path
            except CutShort as error:
                patience.wait(error, "list")
            else:
                return

    def _matching(self, prefix: str, start_after: str) -> Iterator[Entry]:
        """Entries below ``prefix`` and after ``start_after``, in the service's order."""
        client = self._connect()
        full, skip = self._location.key(prefix), len(self._location.key(""))
        after = max(self._location.key(start_after) if start_after else "", just_below(full))
        with self._translated("list", ""):
            pages = client.engine.list(
                client.store, full.rpartition("/")[0] or None, offset=whole_names(after) or None, chunk_size=_PAGE
            )
        for item in self._items(iter(pages)):
            path = cast(str, item["path"])[skip:]
            if path.startswith(prefix):
                if path > start_after:
                    yield Entry(path, cast(int, item["size"]), cast(datetime, item["last_modified"]).timestamp())
            elif path > prefix and not self._listed_out_of_order:
                return

    def _items(self, pages: Iterator[Sequence[Mapping[str, object]]]) -> Iterator[Mapping[str, object]]:
        while True:
            with self._translated("list", ""):
                page = next(pages, None)
            if page is None:
                return
            yield from page

    def _connect(self) -> Client:
        """This process's client. Of racing threads each may make one; all but one are dropped."""
        client = self._client
        if client is None or client.process != os.getpid():
            environment = with_profile(os.environ) if self._location.kind == "s3" else os.environ
            settings = resolve_settings(self._location, self._storage_options, environment, self._options.retries)
            self._secrets = settings.secrets
            with self._translated("open", ""):
                client = self._client = Client(self._location, settings)
        return client

    def _key(self, path: str) -> str:
        return self._location.key(check_path(self.uri, path))

    def _target(self, verb: str, path: str) -> str:
        """The key of an object that is to be written."""
        key = self._key(path)
        if self._location.kind == "http":
            raise Unsupported(f"{verb} is not possible: HTTP stores are read-only", uri=self._name(path))
        if self._location.kind == "azure" and "\\" in path:
            raise InvalidInput(f"{path!r}: Azure would turn the backslash into a slash", uri=self.uri)
        return key

    def _name(self, path: str) -> str:
        return join_uri(self.uri, path)

    def _translated(self, verb: str, path: str) -> AbstractContextManager[None]:
        return translated(verb, self._name(path), self._secrets)


def _rebuild(uri: str, storage_options: Mapping[str, str], options: Options) -> RemoteStore:
    return RemoteStore(uri, storage_options=storage_options, options=options)
