"""Files of users: CSV and the JSON of OpenPAI's API."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import PaiError
from pai_install.users.import_file import MAX_BYTES, MAX_USERS, parse_users
from tests.errors import raises


def read(content: str | bytes) -> dict[str, tuple[str, ...]]:
    found = parse_users(content.encode() if isinstance(content, str) else content)
    return {one.name: one.groups for one in found}


def test_csv() -> None:
    text = (
        'mail, Name ,groups\r\na@example.com,alice,Vision speech\r\n,Team_B.lee,"Vision;Vision"\r\n\r\n,alice,audio\r\n'
    )
    assert read("\ufeff" + text) == {"alice": ("Vision", "speech", "audio"), "team-b-lee": ("Vision",)}


def test_json_of_openpai() -> None:
    lee = {
        "username": "lee",
        "email": "",
        "grouplist": ["default", "vc1"],
        "virtualCluster": ["default"],
        "admin": False,
    }
    assert read(json.dumps([lee])) == {"lee": ("default", "vc1")}


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"name,groups\n",
        b"[]",
        b"[",
        b"user;group\nalice;Vision\n",
        b"name,groups\nalice,\nb c,Vision\n",
        b'[{"username": "alice", "grouplist": "Vision"}, 3, {"grouplist": ["Vision"]}]',
        b"name,groups\n\xff,Vision\n",
        b'name,groups\n"' + b"a" * 200_000 + b'",Vision\n',
        b"name,groups\n\x1b[31mred,Vision\n",
        b"name,groups\n" + b"".join(b"u%d,Vision\n" % number for number in range(MAX_USERS + 1)),
        b"#" * (MAX_BYTES + 1),
    ],
    ids=range(12),
)
def test_a_file_without_usable_users_is_refused(content: bytes, snapshot: SnapshotAssertion) -> None:
    with raises("user-file-invalid") as caught:
        parse_users(content)
    assert (caught.value.message, caught.value.details) == snapshot


@given(st.one_of(st.binary(max_size=400), st.binary(max_size=200).map(lambda rest: b"name,groups\n" + rest)))
def test_any_file_gives_users_or_an_error(content: bytes) -> None:
    with suppress(PaiError):
        assert parse_users(content)
