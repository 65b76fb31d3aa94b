from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from pai_install.components.access import Mirror
from pai_install.components.bundle import Bundle, write_bundle
from pai_install.components.catalogue import load_catalogue
from pai_install.components.choose import choose
from pai_install.components.fetch import fetch, open_source
from pai_install.components.model import ComponentSet, PinnedComponent, Selection, SourceName
from pai_install.components.source import BuildContext
from pai_install.components.store import Contents, StagedFile, StagedImage, Store
from pai_install.errors import ExitCode, PaiError
from tests.errors import raises

PICKS = (PinnedComponent("runc", "1.4.3"), PinnedComponent("pause", "3.10.2"))
SELECTION = Selection("1.36.3", "modules", PICKS)


class Source:
    """Makes a program and an image per component; images share one layer on disk."""

    name: SourceName = "modules"

    def key(self, pick: PinnedComponent) -> str:
        return f"{pick.component}-{pick.version}-0123456789abcdef"

    def pinned(self, pick: PinnedComponent) -> Mapping[str, str]:
        del pick
        return {}

    def debian_packages(self, pick: PinnedComponent) -> tuple[str, ...]:
        del pick
        return ()

    def disk_mb(self, pick: PinnedComponent) -> int:
        del pick
        return 1

    def prefetch(self, pick: PinnedComponent, context: BuildContext) -> AbstractContextManager[None]:
        del pick, context
        return nullcontext()

    def produce(self, pick: PinnedComponent, staged: Path, context: BuildContext) -> Contents:
        program, layout = staged / "files" / pick.component, staged / "images" / pick.component
        program.parent.mkdir()
        program.write_bytes(f"{pick.component} program".encode())
        program.chmod(0o755)
        layout.mkdir(parents=True)
        shared = context.store.root / "shared-layer"
        shared.write_bytes(b"layer") if not shared.exists() else None
        (layout / "layer").hardlink_to(shared)
        return Contents(
            (StagedFile(pick.component, pick.version, "binary", program),),
            (StagedImage(pick.component, "v1", "sha256:ab", layout),),
        )


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    target = tmp_path / "out/pai.tar"
    write_bundle(SELECTION, Source(), target, tmp_path / "here")
    return target


def unpacked(path: Path, cache: Path) -> ComponentSet:
    opened = Bundle(path)
    return fetch(opened.selection("1.36"), opened, cache)


def test_what_went_in_comes_out_elsewhere(bundle: Path, tmp_path: Path) -> None:
    result = unpacked(bundle, tmp_path / "there")
    assert result.kubernetes_version == "1.36.3"
    assert result.file("runc").path.read_bytes() == b"runc program"
    assert result.file("runc").path.stat().st_mode & 0o111
    assert result.file("runc").path.is_relative_to(tmp_path / "there")
    # hard links between entries must not be lost
    assert [(image.layout / "layer").read_bytes() for image in result.images] == [b"layer", b"layer"]


def test_the_sums_are_those_of_the_box_that_made_it(bundle: Path, tmp_path: Path) -> None:
    here = fetch(SELECTION, Source(), tmp_path / "here")
    there = unpacked(bundle, tmp_path / "there")
    assert [file.sha256 for file in here.files] == [file.sha256 for file in there.files]
    assert [image.manifest_digest for image in here.images] == [image.manifest_digest for image in there.images]


def test_what_was_unpacked_once_is_not_unpacked_again(bundle: Path, tmp_path: Path) -> None:
    unpacked(bundle, tmp_path / "there")
    opened = Bundle(bundle)
    told: list[str] = []
    fetch(opened.selection(""), opened, tmp_path / "there", told.append)
    assert told == []


def test_only_whole_bundles_are_left(bundle: Path) -> None:
    assert [path.name for path in bundle.parent.iterdir()] == ["pai.tar"]


def test_a_damaged_bundle_is_refused(bundle: Path, tmp_path: Path) -> None:
    data = bundle.read_bytes()
    assert data.count(b"pause program") == 1
    bundle.write_bytes(data.replace(b"pause program", b"evil! program"))
    with raises("bundle-digest-mismatch", "files/pause"):
        unpacked(bundle, tmp_path / "there")
    assert not list((tmp_path / "there/entries").glob("pause*"))


def test_a_bundle_without_a_record_is_refused(bundle: Path, tmp_path: Path) -> None:
    with tarfile.open(bundle) as archive:
        archive.extractall(tmp_path / "x", filter="data")
    with tarfile.open(bundle, "w") as archive:
        archive.add(tmp_path / "x/bundle.json", "bundle.json")
    with raises("bundle-digest-mismatch", "entry.json"):
        unpacked(bundle, tmp_path / "there")


@pytest.mark.parametrize("wanted", ["", "1.36", "1.36.3", "v1.36.3"])
def test_the_wanted_kubernetes_may_be_a_minor(bundle: Path, wanted: str) -> None:
    assert Bundle(bundle).selection(wanted) == Selection("1.36.3", "bundle", PICKS)


@pytest.mark.parametrize("wanted", ["1.35", "1.36.4", "1.3"])
def test_another_kubernetes_than_held_is_refused(bundle: Path, wanted: str) -> None:
    with raises("bundle-kubernetes-version", "1.36.3") as refused:
        Bundle(bundle).selection(wanted)
    assert refused.value.exit_code == ExitCode.SITE_INVALID


@pytest.mark.parametrize("content", [b"", b"not a tar", json.dumps({"schema_version": 1}).encode()])
def test_another_file_is_not_a_bundle(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.tar").write_bytes(content)
    with raises("bundle-unreadable") as refused:
        Bundle(tmp_path / "x.tar")
    assert refused.value.exit_code == ExitCode.SITE_INVALID


def test_another_tar_is_not_a_bundle(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("x")
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        archive.add(tmp_path / "README", "README")
    with raises("bundle-unreadable"):
        Bundle(tmp_path / "x.tar")


def test_a_bundle_needs_nothing_of_the_box(bundle: Path) -> None:
    opened = Bundle(bundle)
    assert opened.name == "bundle"
    assert opened.debian_packages(PICKS[0]) == ()
    assert opened.disk_mb(PICKS[0]) >= 1


def test_a_site_chooses_its_bundle(bundle: Path) -> None:
    catalogue = load_catalogue()
    held = {pick.component: catalogue.components[pick.component] for pick in PICKS}
    selection, source = choose(catalogue.model_copy(update={"components": held}), "bundle", "1.36", bundle=bundle)
    assert (selection.source, source.name) == ("bundle", "bundle")
    with raises("bundle-path-missing"):
        choose(load_catalogue(), "bundle", "1.36")


def test_a_bundle_of_before_a_component_was_needed_is_refused(bundle: Path) -> None:
    with raises("bundle-incomplete", "nvidia-device-plugin") as refused:
        choose(load_catalogue(), "bundle", "1.36", bundle=bundle)
    assert refused.value.exit_code == ExitCode.SITE_INVALID


def test_a_site_takes_from_a_bundle_what_it_needs(bundle: Path) -> None:
    needed = {PICKS[0].component}
    selection, _source = choose(load_catalogue(), "bundle", "1.36", bundle=bundle, needed=needed)
    assert {pick.component for pick in selection.picks} == needed


def test_a_site_chooses_another_source() -> None:
    selection, source = choose(load_catalogue(), "mirror", "1.36", mirror=Mirror("https://m.example"))
    assert (selection.source, source.name, selection.kubernetes_version) == ("mirror", "mirror", "1.36.4")


def test_a_bundle_is_not_opened_by_name() -> None:
    with pytest.raises(ValueError, match="by its file"):
        open_source(load_catalogue(), "bundle")


def made(path: Path, members: dict[str, bytes], change: Callable[[tarfile.TarInfo], None] | None = None) -> Path:
    """A tar file with those members. change: what is done to the header of each but the first."""
    with tarfile.open(path, "w") as archive:
        for number, (name, data) in enumerate(members.items()):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            if change is not None and number:
                change(member)
            archive.addfile(member, io.BytesIO(data))
    return path


def index(key: str, component: str = "runc", kubernetes: str = "1.36.3") -> bytes:
    picks = [{"component": component, "version": "1.4.3", "key": key}]
    return json.dumps({"schema_version": 1, "kubernetes_version": kubernetes, "picks": picks}).encode()


def record(content: bytes, path: str = "files/runc", **items: Any) -> bytes:
    """entry.json of one program."""
    program = {"name": "runc", "version": "1.4.3", "kind": "binary", "path": path}
    sums = {path: [hashlib.sha256(content).hexdigest(), len(content), 1]}
    base = {"schema_version": 1, "contents": sums, "files": [program], "images": []}
    return json.dumps({**base, **items}).encode()


ESCAPES = ["/../../../../../../../tmp/victim/.ssh", "../victim", "..", ".", "/etc", "a/b", "", "a\x00b", "a\nb"]


@pytest.mark.parametrize("key", ESCAPES)
def test_bundle_escape_by_its_key_is_refused(tmp_path: Path, key: str) -> None:
    with raises("bundle-unreadable"):
        Bundle(made(tmp_path / "x.tar", {"bundle.json": index(key)}))


@pytest.mark.parametrize("words", [{"component": "../x"}, {"component": "a/b"}, {"kubernetes": "1.36.3\n{{ 1 }}"}])
def test_bundle_escape_by_other_words_of_its_index_is_refused(tmp_path: Path, words: dict[str, str]) -> None:
    with raises("bundle-unreadable"):
        Bundle(made(tmp_path / "x.tar", {"bundle.json": index("key", **words)}))


@pytest.mark.parametrize("key", [*ESCAPES, ".runc.abc"])
def test_bundle_escape_through_the_cache_is_refused(tmp_path: Path, key: str) -> None:
    store = Store(tmp_path / "cache")
    with pytest.raises(ValueError, match="no key of the cache"):
        store.folder(key)
    with pytest.raises(ValueError, match="no key of the cache"), store.staging(key):
        pass
    with pytest.raises(ValueError, match="no key of the cache"):
        store.lookup(key, print)


PROGRAM = b"#!/bin/sh\necho EVIL\n"
OUTSIDE = "../../../victim"
RECORDS: dict[str, dict[str, Any]] = {
    "path": {"path": OUTSIDE},
    "absolute path": {"path": "/etc/shadow"},
    "unlisted": {"files": [{"name": "runc", "version": "1", "kind": "binary", "path": "files/other"}]},
    "name": {"files": [{"name": "../runc", "version": "1", "kind": "binary", "path": "files/runc"}]},
    "kind": {"files": [{"name": "runc", "version": "1", "kind": "script", "path": "files/runc"}]},
    "layout": {"images": [{"repository": "a", "tag": "v1", "manifest_digest": "sha256:ab", "layout": OUTSIDE}]},
    "digest": {"images": [{"repository": "a", "tag": "v1", "manifest_digest": "sha256:../x", "layout": "files"}]},
    "manifest": {"manifests": [{"name": "a", "version": "1", "path": "/etc/passwd"}]},
    "contents": {"contents": {"files/runc": "x"}},
    "more": {"more": 1},
}


@pytest.mark.parametrize("words", RECORDS.values(), ids=RECORDS)
def test_bundle_escape_by_its_record_is_refused(tmp_path: Path, words: dict[str, Any]) -> None:
    members = {"bundle.json": index("key"), "key/files/runc": PROGRAM, "key/entry.json": record(PROGRAM, **words)}
    with raises("bundle-digest-mismatch", "entry.json"):
        unpacked(made(tmp_path / "x.tar", members), tmp_path / "there")


@pytest.mark.parametrize("name", ["key/../../../victim", "key/files/../../../../victim", "key//tmp/victim"])
def test_bundle_escape_by_its_members_is_refused(tmp_path: Path, name: str) -> None:
    members = {"bundle.json": index("key"), name: PROGRAM, "key/entry.json": record(PROGRAM)}
    with raises("bundle-digest-mismatch"):
        unpacked(made(tmp_path / "x.tar", members), tmp_path / "there")
    assert not list(tmp_path.rglob("victim"))


STRANGE = {
    "no name": {"path": "key/a\0b"},
    "endless name": {"path": "key/" + "a" * 5000},
    "deep": {"path": f"key/{'a/' * 3000}b"},
    "control": {"path": "key/../\x1b[2J\u202e"},
    "time": {"mtime": "1e300"},
    "no time": {"mtime": "nan"},
    "size": {"size": str(1 << 70)},
    "negative size": {"size": "-512"},
}


@pytest.mark.parametrize("words", STRANGE.values(), ids=STRANGE)
def test_a_bundle_with_a_strange_member_is_refused(tmp_path: Path, words: dict[str, str]) -> None:
    def change(member: tarfile.TarInfo) -> None:
        member.pax_headers = words if member.name.endswith("runc") else {}

    members = {"bundle.json": index("key"), "key/files/runc": PROGRAM, "key/entry.json": record(PROGRAM)}
    with pytest.raises(PaiError) as caught:
        unpacked(made(tmp_path / "x.tar", members, change), tmp_path / "there")
    assert caught.value.code in {"bundle-digest-mismatch", "bundle-unreadable"}
    assert caught.value.message.isprintable()


def test_bundle_escape_by_a_link_is_refused(tmp_path: Path) -> None:
    def link(member: tarfile.TarInfo) -> None:
        if member.name.endswith("runc"):
            member.type, member.linkname, member.size = tarfile.SYMTYPE, "/etc/passwd", 0

    members = {"bundle.json": index("key"), "key/files/runc": b"", "key/entry.json": record(b"")}
    with raises("bundle-digest-mismatch", "files/runc"):
        unpacked(made(tmp_path / "x.tar", members, link), tmp_path / "there")


def test_a_bundle_that_unpacks_to_more_than_it_is_is_refused(bundle: Path, tmp_path: Path) -> None:
    packed = tmp_path / "packed.tar"
    packed.write_bytes(gzip.compress(bundle.read_bytes()))
    with raises("bundle-unreadable"):
        Bundle(packed)


def test_cache_poison_a_bundle_never_stands_for_another_source(bundle: Path, tmp_path: Path) -> None:
    """Its keys are those of another source, its programs are not."""
    content = made(tmp_path / "evil.tar", {
        "bundle.json": index(Source().key(PICKS[0])),
        f"{Source().key(PICKS[0])}/files/runc": PROGRAM,
        f"{Source().key(PICKS[0])}/entry.json": record(PROGRAM),
    })  # fmt: skip
    cache = tmp_path / "there"
    assert unpacked(content, cache).file("runc").path.read_bytes() == PROGRAM
    assert fetch(SELECTION, Source(), cache).file("runc").path.read_bytes() == b"runc program"
    assert unpacked(bundle, cache).file("runc").path.read_bytes() == b"runc program"
    assert unpacked(content, cache).file("runc").path.read_bytes() == PROGRAM


def test_cache_poison_a_bundle_never_stands_for_another_bundle(bundle: Path, tmp_path: Path) -> None:
    """It shows the record of the other one, and unpacks to its own."""
    key = Source().key(PICKS[0])
    with tarfile.open(bundle) as archive:
        handle = archive.extractfile(f"{key}/entry.json")
        assert handle is not None
        theirs = handle.read()
    members = {"bundle.json": index(key), f"{key}/entry.json": theirs, f"{key}/files/runc": PROGRAM}
    members[f"{key}/./entry.json"] = record(PROGRAM)
    with raises("bundle-digest-mismatch", "entry.json"):
        unpacked(made(tmp_path / "evil.tar", members), tmp_path / "there")
