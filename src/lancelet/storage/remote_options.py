"""Storage options: pylance's key names and the environment, resolved into settings for one kind of service."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lancelet.config import Retries
from lancelet.errors import InvalidInput
from lancelet.storage.remote_location import Kind, Location

__all__ = ["Settings", "known_names", "resolve_settings"]

StorageOptions = Mapping[str, str]

_S3 = """
access_key_id secret_access_key session_token region default_region endpoint endpoint_url_s3
virtual_hosted_style_request skip_signature s3_express server_side_encryption sse_kms_key_id sse_bucket_key_enabled
sse_customer_key_base64 unsigned_payload checksum_algorithm imdsv1_fallback metadata_endpoint
container_credentials_relative_uri container_credentials_full_uri container_authorization_token_file role_arn
role_session_name web_identity_token_file endpoint_url_sts disable_tagging disable_bulk_delete request_payer
conditional_put copy_if_not_exists
"""
_AZURE = """
account_name account_key client_id client_secret credential_type tenant_id authority_host sas_key token use_emulator
use_fabric_endpoint encryption_key endpoint msi_endpoint object_id msi_resource_id federated_token_file use_azure_cli
skip_signature disable_tagging fabric_token_service_url fabric_workload_host fabric_session_token
fabric_cluster_identifier
"""
_GCS = "service_account service_account_key base_url bearer_token application_credentials skip_signature"
_CLIENT = """
allow_http allow_invalid_certificates connect_timeout default_content_type http1_only http2_keep_alive_interval
http2_keep_alive_timeout http2_keep_alive_while_idle http2_only pool_idle_timeout pool_max_idle_per_host proxy_url
proxy_ca_certificate proxy_excludes randomize_addresses read_timeout timeout user_agent
"""
_RETRY = "client_max_retries client_retry_timeout"
#: Prefixes that a key may carry; in the environment it must carry one.
_PREFIXES: dict[Kind, tuple[str, ...]] = {
    "s3": ("aws_",),
    "azure": ("azure_storage_", "azure_"),
    "gcs": ("google_",),
    "http": (),
}
_NAMES: dict[Kind, str] = {"s3": _S3, "azure": _AZURE, "gcs": _GCS, "http": ""}
_OTHER_NAMES: dict[Kind, dict[str, str]] = {
    "s3": {"token": "session_token", "endpoint_url": "endpoint", "sts_endpoint": "endpoint_url_sts"},
    "azure": {
        "access_key": "account_key",
        "master_key": "account_key",
        "sas_token": "sas_key",
        "bearer_token": "token",
        "authority_id": "tenant_id",
        "identity_endpoint": "msi_endpoint",
        "use_http": "allow_http",
        "object_store_use_emulator": "use_emulator",
    },
    "gcs": {"service_account_path": "service_account", "storage_token": "bearer_token"},
    "http": {},
}
_CLIENT_OTHER_NAMES = {"request_timeout": "timeout"}
_DURATIONS = frozenset(name for name in _CLIENT.split() if name.endswith(("timeout", "interval")))
# What the service's library calls a key, where that is not our name for it.
_LIBRARY_NAMES = {"endpoint_url_s3": "aws_endpoint_url_s3", "endpoint_url_sts": "aws_endpoint_url_sts"}
# Options that make the environment's values for others meaningless: keys come in sets, not one by one.
_OUTRANKS = {
    "access_key_id": ("secret_access_key", "session_token"),
    "endpoint": ("endpoint_url_s3",),
    "region": ("default_region",),
    "default_region": ("region",),
}
_SECRETS = """
access_key_id secret_access_key session_token sse_customer_key_base64 account_key client_secret sas_key token
encryption_key fabric_session_token service_account_key bearer_token proxy_url
"""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a client is built from. Its ``repr`` shows names only: most values are credentials."""

    config: dict[str, str] = field(repr=False)
    client: dict[str, str] = field(repr=False)
    retries: Retries
    #: Keys that were given and mean nothing to this kind of service, with the known key nearest to each.
    ignored: dict[str, str | None] = field(default_factory=dict)

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that no message may hold, longest first."""
        values = (self.config | self.client).items()
        return tuple(
            sorted({text for name, text in values if name in _SECRETS.split() and len(text) > 3}, key=len, reverse=True)
        )


def resolve_settings(
    location: Location, storage_options: StorageOptions, environment: Mapping[str, str], retries: Retries
) -> Settings:
    """Options win over what the URI says, and that over the environment. Keys are case-insensitive.

    Keys that the service does not know are ignored, as in pylance, and named in ``ignored``.

    >>> place = Location("s3://b", "s3", "b", "")
    >>> settings = resolve_settings(place, {"AWS_Region": "eu-west-1", "timout": "5s"}, {}, Retries())
    >>> settings.config, settings.ignored
    ({'region': 'eu-west-1'}, {'timout': 'timeout'})
    """
    names = known_names(location.kind)
    given, ignored = _given(names, storage_options)
    merged = _from_environment(location.kind, names, environment)
    for name, outranked in _OUTRANKS.items():
        if name in given:
            merged = {key: value for key, value in merged.items() if key not in outranked}
    merged |= location.settings | given
    if "endpoint" in given and location.kind == "s3":
        # The library reads the environment too, and prefers its endpoint_url_s3 to any endpoint.
        merged.setdefault("endpoint_url_s3", given["endpoint"])
    # A region that was asked for outranks the default of the environment.
    default_region = merged.pop("default_region", None)
    if default_region is not None:
        merged.setdefault("region", default_region)
    client = {name: _duration(name, merged.pop(name)) for name in _CLIENT.split() if name in merged}
    retries = _retries(retries, merged.pop("client_max_retries", None), merged.pop("client_retry_timeout", None))
    if location.bucket.startswith("http://"):
        client["allow_http"] = "true"
    _check_endpoint(location, merged, client)
    return Settings({_LIBRARY_NAMES.get(k, k): v for k, v in merged.items()}, client, retries, ignored)


def known_names(kind: Kind) -> dict[str, str]:
    """Every spelling of every key of a kind of service, and the name that we call it by."""
    names = {name: name for name in _NAMES[kind].split()} | _OTHER_NAMES[kind]
    general = {name: name for name in (*_CLIENT.split(), *_RETRY.split())} | _CLIENT_OTHER_NAMES
    names = general | names
    return {prefix + spelling: name for prefix in ("", *_PREFIXES[kind]) for spelling, name in names.items()}


def _given(names: Mapping[str, str], options: StorageOptions) -> tuple[dict[str, str], dict[str, str | None]]:
    given: dict[str, str] = {}
    source: dict[str, str] = {}
    ignored: dict[str, str | None] = {}
    for key, value in options.items():
        name = names.get(key.lower())
        if name is None:
            ignored[key] = next(iter(difflib.get_close_matches(key.lower(), names, 1, 0.75)), None)
            continue
        text = _text(key, value)
        if given.setdefault(name, text) != text:
            raise InvalidInput(f"storage options {source[name]!r} and {key!r} mean the same and differ")
        source[name] = key
    return given, ignored


def _text(key: str, value: object) -> str:
    """An option's value as text; ``True`` and numbers are welcome too."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise InvalidInput(f"storage option {key!r} is a {type(value).__name__}, expected text")


def _from_environment(kind: Kind, names: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Keys of the environment, in the order of the table so that the same variables always give the same result.

    ``AWS_…``, ``AZURE_…`` and ``GOOGLE_…`` count, also the client's own names (``TIMEOUT``, ``ALLOW_HTTP``), and
    ``OBJECT_STORE_CLIENT_MAX_RETRIES``.
    """
    general = {*_CLIENT.split(), "object_store_use_emulator"}
    variables = {key.lower(): value for key, value in environment.items() if value}
    found: dict[str, str] = {}
    for spelling, name in names.items():
        if spelling in general or spelling.startswith(_PREFIXES[kind] or ("\0",)):
            value = variables.get(spelling)
        else:
            value = variables.get(f"object_store_{spelling}") if spelling in _RETRY.split() else None
        if value is not None:
            found.setdefault(name, value)
    return found


def _duration(name: str, text: str) -> str:
    """A plain number of a duration means seconds."""
    return f"{text}s" if name in _DURATIONS and text.isdecimal() else text


def _retries(retries: Retries, attempts: str | None, deadline: str | None) -> Retries:
    """The retry policy, with pylance's two keys applied; like pylance, what is not a number changes nothing."""
    if attempts is not None and attempts.isdecimal():
        retries = replace(retries, attempts=int(attempts) + 1)
    if deadline is not None and deadline.removesuffix("s").isdecimal():
        retries = replace(retries, deadline=float(deadline.removesuffix("s")))
    return retries


def _check_endpoint(location: Location, config: Mapping[str, str], client: Mapping[str, str]) -> None:
    endpoint = config.get("endpoint_url_s3") or config.get("endpoint") or ""
    emulator = config.get("use_emulator", "").lower() in ("true", "1")
    allowed = client.get("allow_http", "").lower() in ("true", "1", "yes", "on")
    if endpoint.lower().startswith("http://") and not allowed and not emulator:
        hint = "pass allow_http=true if requests may travel unencrypted"
        raise InvalidInput("the endpoint is http://, and that is not allowed", uri=location.uri, hint=hint)
