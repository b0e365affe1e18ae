"""Remote URIs and storage options: what they mean, what is refused, and where secrets may not appear."""

from __future__ import annotations

import os
import pickle
from datetime import timedelta

import pytest

from lancelet.config import Options, Retries
from lancelet.errors import InvalidInput
from lancelet.events import Event, subscribe
from lancelet.storage.remote import RemoteStore
from lancelet.storage.remote_engine import Client
from lancelet.storage.remote_location import just_below, parse_location, whole_names
from lancelet.storage.remote_options import Settings, known_names, resolve_settings

SECRETS = {"aws_access_key_id": "AKIAEXAMPLE", "aws_secret_access_key": "very-secret-1", "token": "very-secret-2"}


def resolve(uri: str, options: dict[str, str] | None = None, environment: dict[str, str] | None = None) -> Settings:
    """The settings of a URI with options and an environment."""
    return resolve_settings(parse_location(uri), options or {}, environment or {}, Retries())


@pytest.mark.parametrize(
    ("uri", "kind", "bucket", "root", "shown", "settings"),
    [
        ("s3://b/a/t.lance", "s3", "b", "a/t.lance", None, {}),
        ("S3A://b/a/", "s3", "b", "a", "s3a://b/a", {}),
        ("s3://b", "s3", "b", "", None, {}),
        ("s3://b/", "s3", "b", "", "s3://b", {}),
        ("s3://b/a%20b/%25zz", "s3", "b", "a b/%zz", "s3://b/a b/%zz", {}),
        ("s3://b/a b/%zz", "s3", "b", "a b/%zz", None, {}),
        ("s3://b--x-s3/t", "s3", "b--x-s3", "t", None, {"s3_express": "true"}),
        ("gs://b/t", "gcs", "b", "t", None, {}),
        ("az://c/t", "azure", "c", "t", None, {}),
        ("az://c@acc/t", "azure", "c", "t", None, {"account_name": "acc"}),
        ("abfss://c@acc.dfs.core.windows.net/t", "azure", "c", "t", None, {"account_name": "acc"}),
        ("https://host:8/a/b", "http", "https://host:8", "a/b", None, {}),
    ],
)
def test_a_uri_names_a_folder_of_a_bucket(
    uri: str, kind: str, bucket: str, root: str, shown: str | None, settings: dict[str, str]
) -> None:
    found = parse_location(uri)
    assert (found.kind, found.bucket, found.root, found.settings) == (kind, bucket, root, settings)
    assert found.uri == (shown or uri)
    again = parse_location(found.uri)
    assert (again.bucket, again.uri) == (found.bucket, found.uri)


@pytest.mark.parametrize(
    ("domain", "settings"),
    [
        ("dfs.core.chinacloudapi.cn", {"endpoint": "https://acc.blob.core.chinacloudapi.cn"}),
        ("dfs.fabric.microsoft.com", {"use_fabric_endpoint": "true"}),
    ],
)
def test_clouds_other_than_the_public_one_have_their_own_endpoint(domain: str, settings: dict[str, str]) -> None:
    assert parse_location(f"abfss://c@acc.{domain}/t").settings == {"account_name": "acc", **settings}


@pytest.mark.parametrize(
    "uri",
    [
        "s3://",
        "s3:///t",
        "s3://b/a//b",
        "s3://b/../t",
        "s3://b/t?sig=secret-words",
        "https://h/t?X-Amz-Signature=secret-words",
        "s3://b/t#secret-words",
        "https://user:secret-words@h/t",
        "https://secret-words@h/t",
        "s3://key:secret-words@b/t",
        "az://c:secret-words@acc/t",
        "abfss://c@acc.example/t",
        "abfss://c@/t",
        "ftp://h/t",
    ],
)
def test_uris_that_name_no_folder_or_hold_secrets_are_refused_without_repeating_them(uri: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        RemoteStore(uri)
    assert "secret-words" not in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "given", "expected"),
    [
        ("s3://b", {"aws_access_key_id": "k"}, {"access_key_id": "k"}),
        ("s3://b", {"AWS_Secret_Access_Key": "s"}, {"secret_access_key": "s"}),
        ("s3://b", {"token": "t"}, {"session_token": "t"}),
        ("s3://b", {"aws_endpoint_url": "https://h"}, {"endpoint": "https://h", "aws_endpoint_url_s3": "https://h"}),
        ("s3://b", {"aws_default_region": "r"}, {"region": "r"}),
        ("s3://b", {"region": "r", "default_region": "q"}, {"region": "r"}),
        ("s3://b--x-s3", {}, {"s3_express": "true"}),
        ("s3://b--x-s3", {"s3_express": "false"}, {"s3_express": "false"}),
        ("az://c", {"azure_storage_account_name": "a"}, {"account_name": "a"}),
        ("az://c", {"azure_storage_sas_token": "s"}, {"sas_key": "s"}),
        ("az://c@acc", {}, {"account_name": "acc"}),
        ("az://c@acc", {"account_name": "other"}, {"account_name": "other"}),
        ("gs://b", {"google_service_account_path": "p"}, {"service_account": "p"}),
        ("gs://b", {"google_storage_token": "t"}, {"bearer_token": "t"}),
    ],
)
def test_options_have_pylance_names(uri: str, given: dict[str, str], expected: dict[str, str]) -> None:
    settings = resolve(uri, given)
    assert settings.config == expected
    assert settings.ignored == {}


def test_what_options_leave_open_comes_from_the_environment() -> None:
    environment = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t", "AWS_REGION": "r"}
    assert resolve("s3://b", {}, environment).config["session_token"] == "t"
    assert resolve("s3://b", {"region": "other"}, environment).config["region"] == "other"
    assert resolve("az://c", {}, environment).config == {}
    azure = {"AZURE_STORAGE_ACCOUNT_NAME": "a", "AZURE_CLIENT_ID": "c", "AZURE_STORAGE_USE_HTTP": "true"}
    assert resolve("az://c", {}, azure).config == {"account_name": "a", "client_id": "c"}
    assert resolve("az://c", {}, azure).client == {"allow_http": "true"}
    google = {"GOOGLE_APPLICATION_CREDENTIALS": "p", "SERVICE_ACCOUNT": "not ours"}
    assert resolve("gs://b", {}, google).config == {"application_credentials": "p"}
    assert resolve("s3://b", {}, {"TIMEOUT": "60s", "REGION": "not ours"}).client == {"timeout": "60s"}
    assert resolve("s3://b", {}, {"OBJECT_STORE_CLIENT_MAX_RETRIES": "3"}).retries.attempts == 4


def test_keys_that_are_given_are_never_mixed_with_those_of_the_environment() -> None:
    environment = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_SESSION_TOKEN": "t"}
    settings = resolve("s3://b", {"access_key_id": "mine", "secret_access_key": "too"}, environment)
    assert settings.config == {"access_key_id": "mine", "secret_access_key": "too"}
    settings = resolve("s3://b", {"endpoint": "https://mine"}, {"AWS_ENDPOINT_URL_S3": "https://theirs"})
    assert set(settings.config.values()) == {"https://mine"}


def test_client_and_retry_options_are_kept_apart() -> None:
    given = {
        "allow_http": True,
        "timeout": "30",
        "connect_timeout": "5s",
        "client_max_retries": "2",
        "client_retry_timeout": 9,
    }
    settings = resolve("s3://b", given)  # type: ignore[arg-type]
    assert settings.client == {"allow_http": "true", "connect_timeout": "5s", "timeout": "30s"}
    assert (settings.retries.attempts, settings.retries.deadline) == (3, 9.0)
    assert resolve("s3://b", {"request_timeout": "7s"}).client == {"timeout": "7s"}
    assert resolve("s3://b", {"client_max_retries": "many"}).retries == Retries()


def test_unknown_keys_are_ignored_and_reported_with_the_nearest_known_one() -> None:
    seen: list[Event] = []
    with subscribe(seen.append):
        RemoteStore("s3://b/t", storage_options={"secret_acess_key": "hidden-value", "entirely_else": "x"})
    assert [(event.name, event.facts["key"], event.facts["nearest"]) for event in seen] == [
        ("storage.option.ignored", "secret_acess_key", "secret_access_key"),
        ("storage.option.ignored", "entirely_else", None),
    ]
    assert "hidden-value" not in repr(seen)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"region": "a", "AWS_REGION": "b"}, "mean the same"),
        ({"endpoint": "http://h:1"}, "allow_http"),
        ({"region": ["a"]}, "is a list"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        RemoteStore("s3://b/t", storage_options=options)


def test_credentials_show_only_in_the_pickle() -> None:
    store = RemoteStore("s3://b/t", storage_options=SECRETS, options=Options(io_concurrency=3))
    location = parse_location("s3://b/t")
    settings = resolve("s3://b/t", SECRETS)
    shown = f"{store!r} {store.uri} {settings!r} {location!r}"
    assert not [secret for secret in SECRETS.values() if secret in shown]
    assert sorted(settings.secrets) == sorted(SECRETS.values())
    twin = pickle.loads(pickle.dumps(store))
    assert (twin.uri, twin._storage_options, twin._options) == (store.uri, SECRETS, store._options)


def test_a_wrong_value_is_refused_without_showing_secrets() -> None:
    store = RemoteStore("s3://b/t", storage_options={**SECRETS, "virtual_hosted_style_request": "maybe"})
    with pytest.raises(InvalidInput, match='"maybe" as boolean') as caught:
        store.size("x")
    assert "very-secret" not in str(caught.value)


# Values for keys that do not take "true".
EXAMPLES = {
    **{f"{name}_timeout": "5s" for name in ("connect", "http2_keep_alive", "pool_idle", "read")},
    "timeout": "5s",
    "http2_keep_alive_interval": "5s",
    "checksum_algorithm": "sha256",
    "conditional_put": "etag",
    "copy_if_not_exists": "multipart",
    "server_side_encryption": "AES256",
    "credential_type": "auto",
    "authority_host": "https://h",
    "endpoint": "https://h",
    "proxy_url": "http://h",
    "sas_key": "sv=1&sig=2",
    "account_key": "AAAA",
    "encryption_key": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=",
    "pool_max_idle_per_host": "9",
}
# Keys that the engine takes only with others, or with files that exist.
TOGETHER = {"access_key_id": {"secret_access_key": "s"}, "secret_access_key": {"access_key_id": "k"}}
NEEDS_A_FILE = {"service_account", "service_account_key", "application_credentials"}


@pytest.mark.parametrize("uri", ["s3://b--use1-az4--x-s3", "gs://b", "az://c@account", "https://h"])
def test_the_engine_takes_every_key_that_we_know(uri: str) -> None:
    location = parse_location(uri)
    for name in sorted(set(known_names(location.kind).values()) - NEEDS_A_FILE):
        settings = resolve(uri, {name: EXAMPLES.get(name, "true"), **TOGETHER.get(name, {})})
        assert Client(location, settings).store is not None, name


@pytest.mark.parametrize("prefix", ["a/b", "a/", "", "a/0", "a/-", "é", "a/é", "v/1844", "a/A"])
def test_the_place_to_list_from_is_below_every_name_with_the_prefix(prefix: str) -> None:
    below = just_below(prefix)
    assert below == whole_names(below)
    assert below.encode() < prefix.encode() or below == prefix == ""


def test_retries_reach_the_engine() -> None:
    settings = resolve("s3://b", {"client_max_retries": "0", **SECRETS})
    client = Client(parse_location("s3://b"), settings)
    assert client.store.retry_config["max_retries"] == 0  # type: ignore[attr-defined]
    assert client.once.retry_config["retry_timeout"] == timedelta(seconds=180)  # type: ignore[attr-defined]
    assert client.process == os.getpid()
