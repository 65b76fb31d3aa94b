"""Files with marks: every problem under its line, no secret in sight."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.documents.document import Document
from pai_install.documents.parse import parse_document
from pai_install.site_edit.annotate import annotate

PLANTED = "pl4nted-s3cret"


def annotated(text: str) -> list[str]:
    document = Document("x.yaml", Path())
    parse_document(text, document)
    return list(annotate(document))


def test_problems_stand_below_their_line(snapshot: SnapshotAssertion) -> None:
    assert annotated("a: 1\nb: 2\na: 3\n") == snapshot


def test_a_problem_without_a_line_comes_last(snapshot: SnapshotAssertion) -> None:
    document = Document("x.yaml", Path())
    document.add((), "site.no-file", "does not exist")
    assert list(annotate(document)) == snapshot


@pytest.mark.parametrize(
    "text",
    [
        f"password: {PLANTED}\n",
        f"password: '{PLANTED}'  # why\n",
        f"password:\n  {PLANTED}\n",
        f"password: |\n  x\n\n  {PLANTED}\n",
        f"password: >-\n  x\n  {PLANTED}\nuser: a\n",
        f'"password" : "{PLANTED}"\n',
        f"{{user: a, password: {PLANTED}}}\n",
        f"{{password:\n{PLANTED}}}\n",
        f"a:\n  - docker_cache_azure_account_key: {PLANTED}\n",
        f"storage-manager: {{smbpwd: {PLANTED}}}\n",
        f"rest-server:\n  jwt-secret: {PLANTED}\n  default-pai-admin-password: {PLANTED}\n",
        f"alert-manager:\n  pai-bearer-token: {PLANTED}\n",
        f"clientSecret: {PLANTED}\n",
        f"registry-htpasswd: {PLANTED}\n",
        f"http_proxy: http://user:{PLANTED}@proxy:3128\n",
        f"password: [{PLANTED}\n",
        f"password: {PLANTED}\n\tbroken\n",
        f"# {PLANTED} is the password\npassword: {PLANTED}\n",
        f"https_proxy: alice:{PLANTED}@host:3128\n",
        f"https_proxy: 'alice:my {PLANTED}@host:3128'\n",
        f"https_proxy: http://alice:a/{PLANTED}@host:3128\n",
        f"pasword: {PLANTED}\n",
        f"passwrd:\n  {PLANTED}\n",
        f"{{user: a, pasword: {PLANTED}}}\n",
        f"docker_registry_pasword: [{PLANTED}\n",
        f"machine-list:\n  - ssh:\n      password-from: {PLANTED}\n",
        f"  - ssh: {{pasword-from: {PLANTED}}}\n",
    ],
)
def test_secrets_are_not_shown(text: str) -> None:
    assert PLANTED not in "\n".join(annotated(text))


@pytest.mark.parametrize(
    "line", ["ssh_key_file_path: ~/.ssh/id", "key-file: /k", "secret-name: x", "user: a", "host: b"]
)
def test_names_of_files_are_no_secrets(line: str) -> None:
    assert f"1 | {line}" in annotated(line + "\n")


@pytest.mark.parametrize("letter", ["a", "x.", "a_pass", "a ", "a:", '"', "a: "])
def test_long_lines_take_their_time_only_once(letter: str) -> None:
    begin = time.process_time()
    annotated(f"no_proxy: '{letter * (100_000 // len(letter))}'\n")
    assert time.process_time() - begin < 10  # 60 s and more where every end of a word was tried


def test_password_from_shows_where_it_comes_from() -> None:
    assert "2 |   env: NAME" in annotated("password-from:\n  env: NAME\n")
