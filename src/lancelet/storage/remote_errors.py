"""What a remote store's failures mean: the engine's errors turned into ours, with no secret in any message."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lancelet.errors import AlreadyExists, InvalidInput, LanceletError, NotFound, Storage, Unsupported

__all__ = ["CutShort", "RangeRefused", "is_engine_error", "translate", "translated"]

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([A-Za-z0-9]{1,80})</Code>|\"code\": ?\"?([A-Za-z0-9]{1,80})")
# What the engine says where no server answered; retrying may help with each.
_CONNECTION = ("HTTP error", "error sending request", "timed out", "timeout", "connection", "operation was canceled")
# What it says to an answer that is not the range it asked for.
_NO_RANGE = ("NotPartial", "ParseContentRange", "UnexpectedRange", "Wanted range", "object was only")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_CONTAINERS = ("NoSuchBucket", "ContainerNotFound")


class RangeRefused(Storage):
    """The server would not give a byte range; the caller finds out whether the object is too short for it."""


class CutShort(Storage):
    """An answer ended before its end, which the engine does not repeat by itself for listings."""

    retryable = True


def is_engine_error(error: BaseException) -> bool:
    """Whether an exception came out of the engine; a forked child's copy has classes of its own."""
    return isinstance(error, FileNotFoundError | ValueError | OSError) or any(
        kind.__name__ == "BaseError" for kind in type(error).__mro__
    )


@contextmanager
def translated(verb: str, uri: str, secrets: Sequence[str] = ()) -> Iterator[None]:
    """Raise the engine's errors of the block as ours. The cause is cut off, because its text may hold secrets."""
    try:
        yield
    except LanceletError:
        raise
    except Exception as error:
        if not is_engine_error(error):
            raise
        raise translate(error, verb, uri, secrets) from None


def translate(error: BaseException, verb: str, uri: str, secrets: Sequence[str] = ()) -> LanceletError:
    """Our error for one of the engine's.

    >>> translate(FileNotFoundError("no"), "read", "s3://bucket/a")
    NotFound('there is no such object')
    """
    text = str(error)
    kind = type(error).__name__
    status = int(found[1]) if (found := _STATUS.search(text)) else None
    code = next((part for part in found.groups() if part), "") if (found := _CODE.search(text)) else ""
    if code in _CONTAINERS:
        return NotFound(f"there is no such bucket or container ({code})", uri=uri)
    if isinstance(error, FileNotFoundError) or status == 404:
        return NotFound("there is no such object", uri=uri)
    if code == "ConditionalRequestConflict":
        return Storage(f"{verb} met another write of the same object (409 {code})", uri=uri, retryable=True)
    if kind == "AlreadyExistsError" or (kind == "PreconditionError" and verb == "put_if_absent"):
        return AlreadyExists("there is an object of this name", uri=uri)
    if status == 416 or any(words in text for words in _NO_RANGE):
        return RangeRefused(f"{verb}: the server gave no such byte range", uri=uri)
    if status is not None:
        return _answered(verb, uri, status, code)
    if kind in ("PermissionDeniedError", "UnauthenticatedError"):
        return _answered(verb, uri, 403, code)
    if kind == "NotSupportedError":
        return Unsupported(f"{verb} is not possible on this store", uri=uri)
    reason = _reason(text, secrets)
    if kind in ("InvalidPathError", "UnknownConfigurationKeyError", "ValueError") or "Config error" in text:
        return InvalidInput(f"{verb} failed: {reason}", uri=uri)
    if "body error" in text:
        return CutShort(f"{verb} failed: {reason}", uri=uri)
    retryable = any(word in text for word in _CONNECTION)
    return Storage(f"{verb} failed: {reason}", uri=uri, retryable=retryable)


def _answered(verb: str, uri: str, status: int, code: str) -> Storage:
    """The error for a server's refusal or failure."""
    said = f"{status} {code}" if code else str(status)
    if status in (401, 403):
        hint = "check the credentials and permissions in storage_options or the environment"
        return Storage(f"{verb} was refused: the server answered {said}", uri=uri, retryable=False, hint=hint)
    if status == 301 or code in ("PermanentRedirect", "AuthorizationHeaderMalformed"):
        hint = "pass the region that the bucket is in as storage option region"
        return Storage(f"{verb} was sent elsewhere: the server answered {said}", uri=uri, retryable=False, hint=hint)
    retryable = status >= 500 or status in (408, 429)
    return Storage(f"{verb} failed: the server answered {said}", uri=uri, retryable=retryable)


def _reason(text: str, secrets: Sequence[str]) -> str:
    """The first line of the engine's message, without URLs (they may be signed) and without known secrets."""
    line = text.partition("\n")[0].strip()
    for secret in secrets:
        line = line.replace(secret, "***")
    return _URL.sub("the server", line)[:300]
