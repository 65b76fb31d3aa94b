"""Evidence on its way: what a machine packs must not cost the controller host more than a document may have."""

from __future__ import annotations

import base64
import gzip
import json
import tracemalloc
import zlib

import pytest

from pai_install.errors import PaiError
from pai_install.health.evidence import file
from pai_install.health.evidence.file import unpack
from pai_install.system.plain import TOO_DEEP
from tests.errors import raises


def packed(text: bytes) -> str:
    # No time of day: the text is part of a test's name, which every process of a run must find alike.
    return base64.b64encode(gzip.compress(text, mtime=0)).decode()


def test_packed_and_plain_documents_are_read() -> None:
    for text in (packed(b'{"a": 1}'), '{"a": 1}'):
        assert unpack(text) == {"a": 1}


def bomb(size: int) -> str:
    """So many zeros, packed."""
    packer = zlib.compressobj(9, wbits=31)
    chunks = [packer.compress(bytes(1 << 20)) for _ in range(size >> 20)]
    return base64.b64encode(b"".join([*chunks, packer.flush()])).decode()


def test_gzip_bomb_is_unreadable_and_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "LONGEST", 4 << 20)
    text = bomb(200 << 20)
    tracemalloc.start()
    try:
        with raises("collector-output-unreadable"):
            unpack(text)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def deep(levels: int) -> str:
    return f'{{"a": {"[" * levels}{"]" * levels}}}'


def test_deep_evidence_is_cut() -> None:
    assert TOO_DEEP in json.dumps(unpack(deep(300)))


@pytest.mark.parametrize("text", [deep(100_000), packed(deep(100_000).encode())])
def test_deep_evidence_is_unreadable(text: str) -> None:
    with raises("collector-output-unreadable"):
        unpack(text)


@pytest.mark.parametrize("text", ["", "x", "[]", "5", packed(b"[]"), packed(b"x"), packed(b'{"a": 1}')[:-8], "=" * 9])
def test_anything_else_is_unreadable(text: str) -> None:
    with pytest.raises(PaiError, match="cannot read the output of the collector"):
        unpack(text)
