"""Models run over documents: what pydantic finds, said in our words at the file's lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.documents.document import Document
from pai_install.documents.parse import parse_document
from pai_install.documents.validate import did_you_mean, known_keys, nearest, partly, validate
from pai_install.site.layout_file import LayoutFile
from pai_install.site.settings import Settings
from tests.unit.site.sites import LAYOUT


def document(text: str) -> Document:
    made = Document("x.yaml", Path())
    parse_document(text, made)
    return made


@pytest.mark.parametrize(
    ("path", "some"),
    [
        ((), "machine-list"),
        (("machine-list", 3), "hostip"),
        (("machine-list", 3, "ssh"), "key-file"),
        (("machine-sku", "any-name"), "computing-device"),
        (("machine-sku", "any-name", "cpu"), "vcore"),
        (("kubernetes",), "dashboard-url"),
    ],
)
def test_known_keys_at_every_level(path: tuple[str | int, ...], some: str) -> None:
    assert some in known_keys(LayoutFile, path)


def test_the_nearest_name_is_offered(snapshot: SnapshotAssertion) -> None:
    assert did_you_mean("hostnam", ["hostname", "hostip"]) == snapshot
    assert did_you_mean("zzz", ["b", "a"]) == snapshot
    assert did_you_mean("zzz", [f"key{number}" for number in range(50)]) == ""
    assert nearest("x" * 10_000, ["hostname"]) == ""


def test_a_valid_document_gives_the_model_and_no_problem() -> None:
    source = document(LAYOUT)
    made = validate(LayoutFile, source)
    assert made is not None
    assert made.machine_list[1].hostname == "w1"
    assert source.problems == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("    cpu:\n      vcore: 24\n  gpu", "    cpu: 24\n  gpu", "a mapping is expected, found text"),
        ("    cpu:\n      vcore: 24\n  gpu", "    cpu: [24]\n  gpu", "a mapping is expected, found a list"),
        ("    cpu:\n      vcore: 24\n  gpu", "    cpu:\n  gpu", "has no value"),
        ("    cpu:\n      vcore: 24\n  gpu", "  gpu", "is required"),
        ("hostname: w1", "hostname: {a: b}", "text is expected, found a mapping"),
        ("machine-type: gpu", "machine-type: gpu\n    taints: x", "a list is expected, found text"),
        ("machine-type: gpu", "machine-type: gpu\n    labels: [x]", "a mapping is expected, found a list"),
        ("machine-type: gpu", "machine-type: gpu\n    taints: [~]", "has no value"),
    ],
)
def test_wrong_shapes_are_named(old: str, new: str, message: str) -> None:
    assert old in LAYOUT
    source = document(LAYOUT.replace(old, new))
    assert validate(LayoutFile, source) is None
    assert [problem.message for problem in source.problems if problem.is_error] == [message]


def test_what_is_right_can_be_used_beside_what_is_wrong() -> None:
    source = document("pod_cidr: nonsense\nservice_cidr: 10.1.0.0/16\nwhat: 1\n")
    usable = partly(Settings, source, {"user": "nobody"})
    assert usable is not None
    assert (usable.user, usable.service_cidr, usable.pod_cidr) == ("nobody", "10.1.0.0/16", "10.200.0.0/13")
    assert source.problems == []


def test_a_document_without_content_is_no_model() -> None:
    assert validate(Settings, Document("x.yaml", Path())) is None
