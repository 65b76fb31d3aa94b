"""The file of a job is kept beside the job, without its secrets."""

from __future__ import annotations

import base64
import gzip
import json
import secrets
from typing import Any

import pytest

from pai_install.jobs.job_file import NOTE, file_of, is_beside, unpacked, with_file
from pai_install.jobs.masking import MASK, has_mask, masked

PLAIN = """\
protocolVersion: 2   # a comment
name: train
taskRoles: {worker: {commands: ["echo 'a'"]}}
"""
SECRET = """\
protocolVersion: 2
name: train
secrets:
  key: s3cret-4711   # of the bucket
  other: |
    s3cret-4711
    on two lines
prerequisites:
  - {name: image, type: dockerimage, uri: a/b:1, auth: {username: joe, password: s3cret-4711}}
  - {name: data, type: dockerimage, uri: a/b:1, auth: {username: joe, password: <% $secrets.key %>}}
taskRoles:
  worker:
    commands:
      - "curl -H <% $secrets.key %>"
"""
JOB = {"kind": "JobSet", "metadata": {"name": "train", "namespace": "vision", "labels": {"pai-install/user": "alice"}}}


def test_a_file_without_secrets_stays_as_it_is() -> None:
    assert masked(PLAIN) == PLAIN
    assert not has_mask(PLAIN)


def test_secrets_are_masked_and_nothing_else_is() -> None:
    found = masked(SECRET)
    assert "s3cret" not in found
    assert has_mask(found)
    assert "# of the bucket" in found
    assert found.count("<% $secrets.key %>") == 2
    assert '"curl -H' in found


def test_secrets_of_kubernetes_objects_are_masked() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "alice.key"}, "stringData": {"a": "s3cret"}}
    found = masked(f"{json.dumps(JOB)}\n---\n{json.dumps(secret)}\n")
    assert "s3cret" not in found
    assert MASK in found


@pytest.mark.parametrize("broken", ["secrets: [", "secrets: {a: &a [*a]}", "Secret: !!python/object:os.system {}"])
def test_a_file_with_secrets_that_cannot_be_read_is_not_kept(broken: str) -> None:
    assert "s3cret" not in masked(broken + "\n#")


def test_a_small_file_is_in_an_annotation() -> None:
    noted, beside = with_file(JOB, PLAIN)
    assert beside is None
    assert file_of(noted) == PLAIN
    assert NOTE not in JOB["metadata"]


def test_a_large_file_is_in_a_config_map_of_the_owner() -> None:
    content = secrets.token_hex(60_000)
    noted, beside = with_file(JOB, content)
    assert is_beside(noted)
    assert beside is not None
    assert beside["metadata"]["labels"] == {"pai-install/user": "alice"}
    assert file_of(noted, beside) == content
    assert file_of(noted) is None


def packed(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content, mtime=0)).decode()


@pytest.mark.parametrize(
    "note", ["", "no base64", packed(b"\xff"), packed(b"x" * 40_000_000), packed(b"x")[:-8], "AAAA"], ids=range(6)
)
def test_a_damaged_note_is_no_file(note: str) -> None:
    assert unpacked(note) is None
    job: dict[str, Any] = {"metadata": {"annotations": {NOTE: note}}}
    assert file_of(job) is None
