"""An image out of a file, in the forms that tools write; and a site that gives one for a component."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from pai_install.components.catalogue import load_catalogue
from pai_install.components.choose import choose
from pai_install.components.fetch import cached, fetch
from pai_install.components.image_file import check_image_file, unpack_image_file
from pai_install.components.model import PinnedComponent, Selection
from pai_install.errors import ExitCode, PaiError
from tests.errors import raises

CATALOGUE = load_catalogue()
PICK = PinnedComponent("hivedscheduler", "0.3.4")
Members = dict[str, bytes]


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def layer(text: str = "program") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        member = tarfile.TarInfo("opt/program")
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text.encode()))
    return stream.getvalue()


def config_of(*layers: bytes, architecture: str = "amd64") -> bytes:
    rootfs = {"type": "layers", "diff_ids": [digest(one) for one in layers]}
    return json.dumps({"architecture": architecture, "os": "linux", "rootfs": rootfs}).encode()


def docker_form(architecture: str = "amd64", *, packed: bool = False) -> Members:
    """As docker save wrote it up to version 24; packed: as podman does."""
    one, two = layer("one"), layer("two")
    config = config_of(one, two, architecture=architecture)
    entry = {"Config": "config.json", "RepoTags": ["x:v1"], "Layers": ["1/layer.tar", "2/layer.tar"]}
    second = gzip.compress(two, mtime=0) if packed else two
    files = {"config.json": config, "1/layer.tar": one, "2/layer.tar": second}
    return {"manifest.json": json.dumps([entry]).encode(), **files}


def oci_form(architecture: str = "amd64", *, nested: bool = True) -> Members:
    """As docker save, buildx and skopeo write it now; nested: an index below the index, with an attestation."""
    content = gzip.compress(layer(), mtime=0)
    config = config_of(layer(), architecture=architecture)
    described = {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(config), "size": len(config)}
    part = {"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": digest(content), "size": len(content)}
    manifest = json.dumps({"schemaVersion": 2, "config": described, "layers": [part]}).encode()
    blobs = [content, config, manifest]
    item: dict[str, Any] = {"digest": digest(manifest), "size": len(manifest)}
    if nested:
        item["platform"] = {"os": "linux", "architecture": architecture}
        other = {**item, "digest": digest(b"other"), "platform": {"os": "unknown", "architecture": "unknown"}}
        inner = json.dumps({"manifests": [item, other]}).encode()
        blobs.append(inner)
        item = {"mediaType": "application/vnd.oci.image.index.v1+json", "digest": digest(inner), "size": len(inner)}
    files = {f"blobs/sha256/{digest(blob).removeprefix('sha256:')}": blob for blob in blobs}
    return {"oci-layout": b"{}", "index.json": json.dumps({"manifests": [item]}).encode(), **files}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def made(members: Mapping[str, bytes], name: str = "image.tar", mode: str = "w") -> Path:
        with tarfile.open(tmp_path / name, mode) as archive:  # type: ignore[call-overload]
            for path, content in members.items():
                member = tarfile.TarInfo(path)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return tmp_path / name

    return made


FORMS = {
    "docker": docker_form(),
    "podman": docker_form(packed=True),
    "oci": oci_form(nested=False),
    "oci, nested": oci_form(),
    "both": {**oci_form(), "manifest.json": b"[]"},
    "with ./": {f"./{name}": content for name, content in oci_form().items()},
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_image_is_a_layout_with_every_digest_right(form: Members, write: Callable[..., Path], tmp_path: Path) -> None:
    path, layout = write(form), tmp_path / "layout"
    check_image_file(path, "amd64")
    found = unpack_image_file(path, "amd64", layout, "v1")
    blobs = {f"sha256:{blob.name}": blob.read_bytes() for blob in (layout / "blobs/sha256").iterdir()}
    assert all(digest(content) == name for name, content in blobs.items())
    manifest = json.loads(blobs[found])
    parts = [manifest["config"], *manifest["layers"]]
    assert blobs.keys() == {found, *(part["digest"] for part in parts)}
    assert all(len(blobs[part["digest"]]) == part["size"] for part in parts)
    (described,) = json.loads((layout / "index.json").read_text())["manifests"]
    assert (described["digest"], described["size"]) == (found, len(blobs[found]))


def test_layers_say_whether_they_are_packed(write: Callable[..., Path], tmp_path: Path) -> None:
    found = unpack_image_file(write(docker_form(packed=True)), "amd64", tmp_path / "layout", "v1")
    manifest = json.loads((tmp_path / "layout/blobs/sha256" / found.removeprefix("sha256:")).read_text())
    assert [one["mediaType"].rpartition(".")[2] for one in manifest["layers"]] == ["tar", "tar+gzip"]


def test_packed_file_is_read_too(write: Callable[..., Path]) -> None:
    check_image_file(write(docker_form(), "image.tar.gz", "w:gz"), "amd64")


def without(form: Members, name: str) -> Members:
    return {path: content for path, content in form.items() if path != name}


WRONG: dict[str, tuple[Members, str]] = {
    "no image": ({"readme": b"x"}, "it has no manifest.json"),
    "two images": (docker_form() | {"manifest.json": b"[{}, {}]"}, "it has 2 images"),
    "arm64 by Docker": (docker_form("arm64"), "linux/arm64, and machines are linux/amd64"),
    "arm64 by OCI": (oci_form("arm64", nested=False), "linux/arm64, and machines are linux/amd64"),
    "none for amd64": (oci_form("arm64"), "it has 0 images for linux/amd64"),
    "no configuration": (without(docker_form(), "config.json"), "it has no config.json"),
    "not JSON": (oci_form() | {"index.json": b"{"}, "JSONDecodeError"),
    "a path as a digest": (
        oci_form() | {"index.json": b'{"manifests": [{"digest": "sha256:../../../etc/passwd"}]}'},
        "a digest is not one",
    ),
}


@pytest.mark.parametrize(("form", "why"), WRONG.values(), ids=WRONG)
def test_file_that_is_not_the_image_is_refused(form: Members, why: str, write: Callable[..., Path]) -> None:
    with pytest.raises(PaiError, match=why) as refused:
        check_image_file(write(form), "amd64")
    assert refused.value.exit_code is ExitCode.SITE_INVALID


@pytest.mark.parametrize("content", [None, b"", b"garbage" * 100])
def test_file_that_is_no_archive_is_refused(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / "image.tar"
    if content is not None:
        path.write_bytes(content)
    with raises("image-file-unreadable"):
        check_image_file(path, "amd64")


@pytest.mark.parametrize("form", [docker_form(), oci_form()], ids=["docker", "oci"])
def test_a_sparse_layer_writes_nothing(form: Members, tmp_path: Path) -> None:
    """A few bytes of the file stand for any number of them on the disk."""
    sparse = next(name for name in form if name == "2/layer.tar" or form[name].startswith(b"\x1f\x8b"))
    with tarfile.open(tmp_path / "image.tar", "w", format=tarfile.PAX_FORMAT) as archive:
        for name, content in form.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            if name == sparse:
                size = {"GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.size": str(1 << 26)}
                member.pax_headers = {**size, "GNU.sparse.name": name, "GNU.sparse.map": "0,1"}
            archive.addfile(member, io.BytesIO(content))
    with raises("image-file-unreadable") as caught:
        unpack_image_file(tmp_path / "image.tar", "amd64", tmp_path / "layout", "v1")
    assert f"it has no {sparse}"[:40] in caught.value.message
    assert sum(path.stat().st_size for path in (tmp_path / "layout").rglob("*") if path.is_file()) < 1 << 20


@pytest.mark.parametrize(
    "layer_of",
    [b"\x1f\x8b", gzip.compress(b"x", mtime=0)[:12] + b"\xff" * 40, b"\x1f\x8b\x08" + b"\xff" * 40],
    ids=["short", "damaged", "no-header"],
)
def test_a_layer_that_does_not_unpack_is_refused(layer_of: bytes, write: Callable[..., Path], tmp_path: Path) -> None:
    with raises("image-file-unreadable"):
        unpack_image_file(write(docker_form() | {"2/layer.tar": layer_of}), "amd64", tmp_path / "layout", "v1")


@pytest.mark.parametrize("form", [docker_form(), oci_form()], ids=["docker", "oci"])
def test_damaged_layer_is_refused(form: Members, write: Callable[..., Path], tmp_path: Path) -> None:
    name = next(name for name in form if name == "2/layer.tar" or form[name].startswith(b"\x1f\x8b"))
    with raises("image-file-unreadable"):
        unpack_image_file(write(form | {name: form[name][:-5] + b"wrong"}), "amd64", tmp_path / "layout", "v1")


def hived_of(path: Path, **more: Any) -> tuple[Selection, Any]:
    needed = {"kubernetes", "hivedscheduler"}
    return choose(CATALOGUE, more.pop("source", "modules"), needed=needed, images={"hivedscheduler": path}, **more)


def test_given_image_stands_for_a_component_that_the_source_lacks(write: Callable[..., Path], tmp_path: Path) -> None:
    selection, source = hived_of(write(docker_form()))
    assert PICK in selection.picks
    only = Selection(selection.kubernetes_version, "modules", (PICK,))
    (image,) = fetch(only, source, tmp_path / "cache").images
    assert (image.repository, image.tag) == ("hivedscheduler", "v0.3.4")
    assert cached(only, source, tmp_path / "cache")[PICK] is not None


def test_another_file_is_another_image(write: Callable[..., Path]) -> None:
    keys = {hived_of(write(form, name))[1].key(PICK) for name, form in [("a", docker_form()), ("b", oci_form())]}
    assert len(keys) == 2


def test_everything_else_comes_from_the_source(write: Callable[..., Path]) -> None:
    pick = PinnedComponent("kubernetes", "1.36.3")
    plain = choose(CATALOGUE, "modules", needed={"kubernetes"})[1]
    source = hived_of(write(docker_form()))[1]
    assert (source.name, source.key(pick)) == ("modules", plain.key(pick))
    assert source.debian_packages(pick) == plain.debian_packages(pick)
    assert source.disk_mb(pick) == plain.disk_mb(pick)
    assert (source.debian_packages(PICK), source.pinned(PICK)) == ((), {})


def test_without_a_file_modules_lack_it_and_say_what_helps() -> None:
    with raises("components-not-in-source") as refused:
        choose(CATALOGUE, "modules", needed={"hivedscheduler"})
    assert "component_images" in str(refused.value.remedy)


@pytest.mark.parametrize("component", ["kubernetes", "metrics-server", "nonsense"])
def test_only_a_component_that_is_one_image_can_be_given(component: str, write: Callable[..., Path]) -> None:
    with pytest.raises(PaiError, match=f"component_images: {component}") as refused:
        choose(CATALOGUE, "modules", needed={"kubernetes"}, images={component: write(docker_form())})
    assert "hivedscheduler" in str(refused.value.remedy)
