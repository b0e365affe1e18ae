"""AWS profiles fill what the environment leaves open, in whole sets of keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from lancelet.errors import InvalidInput
from lancelet.storage.remote_profile import with_profile

CREDENTIALS = """
[default]
aws_access_key_id = default-key
aws_secret_access_key = default-secret
[work]
aws_access_key_id = work-key
aws_secret_access_key = work-secret
aws_session_token = work-token
"""
CONFIG = """
[default]
region = eu-west-1
[profile work]
region = us-west-2
endpoint_url = https://work
[profile sso]
sso_session = x
region = eu-north-1
"""


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """An environment that points at profile files."""
    (tmp_path / "credentials").write_text(CREDENTIALS)
    (tmp_path / "config").write_text(CONFIG)
    return {
        "AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "credentials"),
        "AWS_CONFIG_FILE": str(tmp_path / "config"),
    }


@pytest.mark.parametrize(
    ("environment", "key", "token", "region"),
    [
        ({}, "default-key", None, "eu-west-1"),
        ({"AWS_PROFILE": "work"}, "work-key", "work-token", "us-west-2"),
        ({"AWS_PROFILE": "work", "AWS_DEFAULT_REGION": "r"}, "work-key", "work-token", None),
        ({"AWS_PROFILE": "work", "AWS_ACCESS_KEY_ID": "mine"}, "mine", None, "us-west-2"),
        ({"AWS_PROFILE": "sso"}, None, None, "eu-north-1"),
        ({"AWS_PROFILE": "missing"}, None, None, None),
    ],
)
def test_a_profile_adds_what_the_environment_lacks(
    files: dict[str, str], environment: dict[str, str], key: str | None, token: str | None, region: str | None
) -> None:
    found = with_profile(files | environment)
    assert found.get("AWS_ACCESS_KEY_ID") == key
    assert found.get("AWS_SESSION_TOKEN") == token
    assert found.get("AWS_REGION") == region


def test_a_broken_file_is_refused_without_quoting_it(files: dict[str, str]) -> None:
    Path(files["AWS_CONFIG_FILE"]).write_text("very-secret-line")
    with pytest.raises(InvalidInput) as caught:
        with_profile(files)
    assert "very-secret" not in str(caught.value)
