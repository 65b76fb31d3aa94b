from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any

import pytest

from pai_install.components import image
from pai_install.components.image import (
    ImageConfig,
    LayerEntry,
    place,
    read_layer,
    write_archive,
    write_image,
    write_layer,
)


def members(path: Path) -> dict[str, tarfile.TarInfo]:
    with tarfile.open(path) as archive:
        return {member.name: member for member in archive.getmembers()}


def blob(layout: Path, digest: str) -> bytes:
    data = (layout / "blobs/sha256" / digest.removeprefix("sha256:")).read_bytes()
    assert digest == f"sha256:{hashlib.sha256(data).hexdigest()}"
    return data


def nodes(program: Path) -> list[LayerEntry]:
    return [
        LayerEntry("usr/local/bin/etcd", 0o755, program),
        LayerEntry("etc/passwd", 0o644, b"root:x:0:0::/:\n"),
        LayerEntry("bin", link="usr/bin"),
        LayerEntry("tmp", 0o1777),
    ]


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "etcd"
    path.write_bytes(os.urandom(200_000))
    return path


def test_an_archive_holds_what_was_asked_for(tmp_path: Path, program: Path) -> None:
    write_archive(nodes(program), tmp_path / "a.tar.gz")
    found = members(tmp_path / "a.tar.gz")
    assert list(found) == ["bin", "etc", "etc/passwd", "tmp", "usr", "usr/local", "usr/local/bin", "usr/local/bin/etcd"]
    assert found["usr/local/bin/etcd"].mode == 0o755
    assert found["usr/local/bin/etcd"].size == 200_000
    assert found["etc/passwd"].mode == 0o644
    assert found["bin"].issym()
    assert found["bin"].linkname == "usr/bin"
    assert found["tmp"].isdir()
    assert found["tmp"].mode == 0o1777
    with tarfile.open(tmp_path / "a.tar.gz") as archive:
        content = archive.extractfile("usr/local/bin/etcd")
        assert content is not None
        assert content.read() == program.read_bytes()


def test_owner_and_time_tell_nothing_of_this_box(tmp_path: Path, program: Path) -> None:
    write_archive(nodes(program), tmp_path / "a.tar.gz")
    for member in members(tmp_path / "a.tar.gz").values():
        assert (member.uid, member.gid, member.uname, member.gname, member.mtime) == (0, 0, "", "", 0)


def test_the_same_input_gives_the_same_bytes(tmp_path: Path, program: Path) -> None:
    first = write_archive(nodes(program), tmp_path / "a")
    program.touch()
    program.chmod(0o700)
    second = write_archive(reversed(nodes(program)), tmp_path / "other-name")
    assert first == second
    assert (tmp_path / "a").read_bytes() == (tmp_path / "other-name").read_bytes()


def test_another_content_gives_another_digest(tmp_path: Path, program: Path) -> None:
    first = write_archive(nodes(program), tmp_path / "a")
    program.write_bytes(b"other")
    assert write_archive(nodes(program), tmp_path / "b") != first


def test_the_digests_are_of_the_file_and_of_the_tar_in_it(tmp_path: Path, program: Path) -> None:
    packed, plain = write_archive(nodes(program), tmp_path / "a")
    data = (tmp_path / "a").read_bytes()
    assert packed == f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert plain == f"sha256:{hashlib.sha256(gzip.decompress(data)).hexdigest()}"


def test_folders_can_be_left_out(tmp_path: Path) -> None:
    write_archive([LayerEntry("./bridge", 0o755, b"x")], tmp_path / "a", folders=False)
    assert list(members(tmp_path / "a")) == ["./bridge"]


def test_the_last_of_two_equal_paths_wins(tmp_path: Path) -> None:
    write_archive([LayerEntry("a", 0o644, b"first"), LayerEntry("a", 0o644, b"second!")], tmp_path / "a")
    assert members(tmp_path / "a")["a"].size == 7


def test_a_layer_is_named_by_its_digest_and_read_back_the_same(tmp_path: Path, program: Path) -> None:
    layer = write_layer(nodes(program), tmp_path / "layers")
    assert layer.path.name == layer.digest.removeprefix("sha256:")
    assert layer.size == layer.path.stat().st_size
    assert read_layer(layer.path) == layer
    assert [path.name for path in (tmp_path / "layers").iterdir()] == [layer.path.name]


def make_image(folder: Path, program: Path) -> tuple[Path, str]:
    layers = [
        write_layer([LayerEntry("etc/passwd", 0o644, b"root:x:0:0::/:\n")], folder / "layers"),
        write_layer([LayerEntry("etcd", 0o755, program)], folder / "layers"),
    ]
    layout = folder / "layout"
    return layout, write_image(
        layout, layers, ImageConfig(("/etcd",), "65535:65535", ("ETCD_NAME=a",)), "3.6.8-0", "amd64"
    )


def test_an_image_is_a_valid_oci_layout(tmp_path: Path, program: Path) -> None:
    layout, digest = make_image(tmp_path, program)
    assert json.loads((layout / "oci-layout").read_text()) == {"imageLayoutVersion": "1.0.0"}
    index: dict[str, Any] = json.loads((layout / "index.json").read_text())
    (described,) = index["manifests"]
    assert index["schemaVersion"] == 2
    assert described["digest"] == digest
    assert described["annotations"] == {"org.opencontainers.image.ref.name": "3.6.8-0"}
    manifest = json.loads(blob(layout, digest))
    assert manifest["mediaType"] == described["mediaType"] == image.MANIFEST
    assert described["size"] == len(blob(layout, digest))
    config = json.loads(blob(layout, manifest["config"]["digest"]))
    diff_ids = [
        f"sha256:{hashlib.sha256(gzip.decompress(blob(layout, layer['digest']))).hexdigest()}"
        for layer in manifest["layers"]
    ]
    assert config["rootfs"] == {"type": "layers", "diff_ids": diff_ids}
    assert [layer["size"] for layer in manifest["layers"]] == [
        len(blob(layout, layer["digest"])) for layer in manifest["layers"]
    ]
    assert len(list((layout / "blobs/sha256").iterdir())) == 4


def test_an_image_starts_its_program_as_its_user(tmp_path: Path, program: Path) -> None:
    layout, digest = make_image(tmp_path, program)
    manifest = json.loads(blob(layout, digest))
    config = json.loads(blob(layout, manifest["config"]["digest"]))
    assert (config["os"], config["architecture"], config["created"]) == ("linux", "amd64", "1970-01-01T00:00:00Z")
    assert config["config"]["Entrypoint"] == ["/etcd"]
    assert config["config"]["User"] == "65535:65535"
    # kubeadm's manifests call programs by name
    assert "/usr/local/bin" in config["config"]["Env"][0]
    assert config["config"]["Env"][1:] == ["ETCD_NAME=a"]


def test_the_same_image_twice_is_the_same(tmp_path: Path, program: Path) -> None:
    _, first = make_image(tmp_path / "a", program)
    _, second = make_image(tmp_path / "b", program)
    assert first == second


def test_layouts_share_a_layer_on_disk(tmp_path: Path, program: Path) -> None:
    layer = write_layer([LayerEntry("etcd", 0o755, program)], tmp_path / "layers")
    for name in ("a", "b"):
        write_image(tmp_path / name, [layer], ImageConfig(("/etcd",)), "1", "amd64")
    name = layer.digest.removeprefix("sha256:")
    assert (tmp_path / "a/blobs/sha256" / name).samefile(tmp_path / "b/blobs/sha256" / name)


def test_placing_copies_where_linking_is_not_possible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr("pai_install.components.image.os.link", refuse)
    (tmp_path / "a").write_bytes(b"x")
    place(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"x"


def test_a_docker_archive_reader_accepts_the_layers(tmp_path: Path, program: Path) -> None:
    """Every layer unpacks with the strictest filter of Python's tarfile."""
    layer = write_layer(nodes(program), tmp_path / "layers")
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(layer.path.read_bytes()))) as archive:
        archive.extractall(tmp_path / "root", filter="tar")
    assert (tmp_path / "root/usr/local/bin/etcd").read_bytes() == program.read_bytes()


def test_long_paths_survive(tmp_path: Path) -> None:
    path = "/".join(["folder" * 5] * 8)
    write_archive([LayerEntry(path, 0o644, b"x")], tmp_path / "a")
    assert path in members(tmp_path / "a")


def test_an_empty_file_is_not_a_folder(tmp_path: Path) -> None:
    write_archive([LayerEntry("empty", 0o644, b"")], tmp_path / "a")
    assert members(tmp_path / "a")["empty"].isfile()
