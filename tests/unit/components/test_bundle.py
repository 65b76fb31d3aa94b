from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from pai_install.components.bundle import Bundle, write_bundle
from pai_install.components.catalogue import load_catalogue
from pai_install.components.choose import choose
from pai_install.components.fetch import fetch, open_source
from pai_install.components.model import ComponentSet, PinnedComponent, Selection, SourceName
from pai_install.components.source import BuildContext
from pai_install.components.store import Contents, StagedFile, StagedImage
from pai_install.errors import ExitCode, PaiError

PICKS = (PinnedComponent("runc", "1.4.3"), PinnedComponent("pause", "3.10.2"))
SELECTION = Selection("1.36.3", "modules", PICKS)


class Source:
    """Makes a program and an image per component; images share one layer on disk."""

    name: SourceName = "modules"

    def key(self, pick: PinnedComponent) -> str:
        return f"{pick.component}-{pick.version}-0123456789abcdef"

    def debian_packages(self, pick: PinnedComponent) -> tuple[str, ...]:
        del pick
        return ()

    def disk_mb(self, pick: PinnedComponent) -> int:
        del pick
        return 1

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


def test_a_box_that_has_it_all_unpacks_nothing(bundle: Path, tmp_path: Path) -> None:
    opened = Bundle(bundle)
    told: list[str] = []
    fetch(opened.selection(""), opened, tmp_path / "here", told.append)
    assert told == []


def test_only_whole_bundles_are_left(bundle: Path) -> None:
    assert [path.name for path in bundle.parent.iterdir()] == ["pai.tar"]


def test_a_damaged_bundle_is_refused(bundle: Path, tmp_path: Path) -> None:
    data = bundle.read_bytes()
    assert data.count(b"pause program") == 1
    bundle.write_bytes(data.replace(b"pause program", b"evil! program"))
    with pytest.raises(PaiError, match="files/pause of pause does not match the digest"):
        unpacked(bundle, tmp_path / "there")
    assert not list((tmp_path / "there/entries").glob("pause*"))


def test_a_bundle_without_a_record_is_refused(bundle: Path, tmp_path: Path) -> None:
    with tarfile.open(bundle) as archive:
        archive.extractall(tmp_path / "x", filter="data")
    with tarfile.open(bundle, "w") as archive:
        archive.add(tmp_path / "x/bundle.json", "bundle.json")
    with pytest.raises(PaiError, match=r"entry\.json of runc"):
        unpacked(bundle, tmp_path / "there")


@pytest.mark.parametrize("wanted", ["", "1.36", "1.36.3", "v1.36.3"])
def test_the_wanted_kubernetes_may_be_a_minor(bundle: Path, wanted: str) -> None:
    assert Bundle(bundle).selection(wanted) == Selection("1.36.3", "bundle", PICKS)


@pytest.mark.parametrize("wanted", ["1.35", "1.36.4", "1.3"])
def test_another_kubernetes_than_held_is_refused(bundle: Path, wanted: str) -> None:
    with pytest.raises(PaiError, match=r"holds Kubernetes 1\.36\.3") as refused:
        Bundle(bundle).selection(wanted)
    assert refused.value.exit_code == ExitCode.SITE_INVALID


@pytest.mark.parametrize("content", [b"", b"not a tar", json.dumps({"schema_version": 1}).encode()])
def test_another_file_is_not_a_bundle(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.tar").write_bytes(content)
    with pytest.raises(PaiError, match="cannot be read as a component bundle") as refused:
        Bundle(tmp_path / "x.tar")
    assert refused.value.exit_code == ExitCode.SITE_INVALID


def test_another_tar_is_not_a_bundle(tmp_path: Path) -> None:
    (tmp_path / "README").write_text("x")
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        archive.add(tmp_path / "README", "README")
    with pytest.raises(PaiError, match="no index of this version"):
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
    with pytest.raises(PaiError, match="no file is named"):
        choose(load_catalogue(), "bundle", "1.36")


def test_a_bundle_of_before_a_component_was_needed_is_refused(bundle: Path) -> None:
    with pytest.raises(PaiError, match=r"lacks .*nvidia-device-plugin.* another version of pai-install") as refused:
        choose(load_catalogue(), "bundle", "1.36", bundle=bundle)
    assert refused.value.exit_code == ExitCode.SITE_INVALID


def test_a_site_takes_from_a_bundle_what_it_needs(bundle: Path) -> None:
    needed = {PICKS[0].component}
    selection, _source = choose(load_catalogue(), "bundle", "1.36", bundle=bundle, needed=needed)
    assert {pick.component for pick in selection.picks} == needed


def test_a_site_chooses_another_source() -> None:
    selection, source = choose(load_catalogue(), "mirror", "1.36", mirror_url="https://m.example")
    assert (selection.source, source.name, selection.kubernetes_version) == ("mirror", "mirror", "1.36.4")


def test_a_bundle_is_not_opened_by_name() -> None:
    with pytest.raises(ValueError, match="by its file"):
        open_source(load_catalogue(), "bundle")
