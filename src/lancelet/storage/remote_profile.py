"""AWS profiles: the keys and the region that ``~/.aws`` holds for a user, as if the environment had them."""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path

from lancelet.errors import InvalidInput

__all__ = ["with_profile"]

_KEYS = {
    "aws_access_key_id": "AWS_ACCESS_KEY_ID",
    "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "AWS_SESSION_TOKEN",
}


def with_profile(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment, and what the profile ``AWS_PROFILE`` (or ``default``) adds to it; the environment wins.

    Keys come as a set: where the environment has an access key, the profile's secret and token are not taken.
    Profiles that get their keys elsewhere (``sso_…``, ``role_arn``, ``credential_process``) add their region only.

    >>> with_profile({"AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere", "X": "1"})["X"]
    '1'
    """
    name = environment.get("AWS_PROFILE") or environment.get("AWS_DEFAULT_PROFILE") or "default"
    credentials = _section(environment.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials"), name)
    section = name if name == "default" else f"profile {name}"
    config = _section(environment.get("AWS_CONFIG_FILE", "~/.aws/config"), section)
    found = dict(environment)
    if not found.get("AWS_ACCESS_KEY_ID"):
        keys = credentials if "aws_access_key_id" in credentials else config
        if "aws_access_key_id" in keys:
            found = {variable: value for variable, value in found.items() if variable not in _KEYS.values()}
        found |= {variable: keys[key] for key, variable in _KEYS.items() if key in keys}
    if not (found.get("AWS_REGION") or found.get("AWS_DEFAULT_REGION")) and "region" in config:
        found["AWS_REGION"] = config["region"]
    if not (found.get("AWS_ENDPOINT") or found.get("AWS_ENDPOINT_URL")) and "endpoint_url" in config:
        found["AWS_ENDPOINT_URL"] = config["endpoint_url"]
    return found


def _section(file: str, name: str) -> dict[str, str]:
    """One section of an INI file; empty if there is no such file or section."""
    path = Path(file).expanduser()
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (OSError, RuntimeError):
        return {}
    except (configparser.Error, UnicodeDecodeError):
        # The parser's own message would quote lines of the file, which may be keys.
        raise InvalidInput("the AWS profile file is not in INI form", uri=str(path)) from None
    return dict(parser[name]) if parser.has_section(name) else {}
