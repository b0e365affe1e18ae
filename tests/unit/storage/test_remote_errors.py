"""The engine's failures become ours: the right class, retryable or not, and no secret in the message."""

from __future__ import annotations

import pytest

from lancelet.errors import AlreadyExists, InvalidInput, LanceletError, NotFound, Storage, Unsupported
from lancelet.storage.remote_errors import RangeRefused, translate, translated


def engine_error(name: str, text: str) -> Exception:
    """An error as the engine makes it; a forked child's copy of the engine has classes of its own like these."""
    base = type("BaseError", (Exception,), {})
    error: Exception = type(name, (base,), {})(text)
    return error


def answer(status: int, code: str = "") -> str:
    """The engine's words for a server's answer."""
    body = f"<Error><Code>{code}</Code><Message>sig=hidden</Message></Error>" if code else ""
    url = "https://h/b/key?sig=hidden"
    return f"Error performing GET {url} in 2ms - Server returned non-2xx status code: {status} Words: {body}"


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        (FileNotFoundError(answer(404, "NoSuchKey")), NotFound, False),
        (FileNotFoundError(answer(404, "NoSuchBucket")), NotFound, False),
        (engine_error("GenericError", answer(404, "ContainerNotFound")), NotFound, False),
        (engine_error("AlreadyExistsError", answer(412, "PreconditionFailed")), AlreadyExists, False),
        (engine_error("AlreadyExistsError", answer(409, "BlobAlreadyExists")), AlreadyExists, False),
        (engine_error("AlreadyExistsError", answer(409, "ConditionalRequestConflict")), Storage, True),
        (engine_error("PreconditionError", answer(412)), AlreadyExists, False),
        (engine_error("GenericError", answer(416, "InvalidRange")), RangeRefused, False),
        (engine_error("GenericError", answer(500, "InternalError")), Storage, True),
        (engine_error("GenericError", answer(503, "SlowDown")), Storage, True),
        (engine_error("GenericError", answer(429)), Storage, True),
        (engine_error("GenericError", answer(400, "BadDigest")), Storage, False),
        (engine_error("PermissionDeniedError", answer(403, "AccessDenied")), Storage, False),
        (engine_error("UnauthenticatedError", answer(401)), Storage, False),
        (engine_error("GenericError", "HTTP error: error sending request"), Storage, True),
        (engine_error("GenericError", "HTTP error: request timed out"), Storage, True),
        (engine_error("NotSupportedError", "Operation not supported"), Unsupported, False),
        (engine_error("InvalidPathError", "bad path"), InvalidInput, False),
    ],
    ids=lambda value: str(value)[-60:],
)  # fmt: skip
def test_failures_are_translated(error: Exception, kind: type[LanceletError], retryable: bool) -> None:
    found = translate(error, "put_if_absent", "s3://b/key")
    assert (type(found), found.retryable, found.uri) == (kind, retryable, "s3://b/key")
    assert "hidden" not in str(found)


def test_a_refusal_names_status_code_and_way_out() -> None:
    error = translate(engine_error("PermissionDeniedError", answer(403, "AccessDenied")), "read", "s3://b/key")
    assert "403 AccessDenied" in str(error)
    assert "credentials" in str(error)


def test_another_region_is_named_as_the_way_out() -> None:
    error = translate(engine_error("GenericError", answer(301, "PermanentRedirect")), "read", "s3://b/key")
    assert "region" in str(error)
    assert not error.retryable


def test_known_secrets_are_struck_out_and_the_cause_is_cut_off() -> None:
    with pytest.raises(Storage) as caught, translated("put", "az://c/x", ["s3cr3t"]):
        raise engine_error("GenericError", "bad s3cr3t at https://h/?sig=abc\nDebug: s3cr3t")
    assert "s3cr3t" not in str(caught.value)
    assert "sig=" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_errors_that_are_not_the_engines_pass_unchanged() -> None:
    with pytest.raises(ZeroDivisionError), translated("put", "s3://b/x"):
        raise ZeroDivisionError
    ours = NotFound("x")
    with pytest.raises(NotFound) as caught, translated("put", "s3://b/x"):
        raise ours
    assert caught.value is ours
