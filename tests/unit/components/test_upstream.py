from __future__ import annotations

import hashlib
import io
import subprocess
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pai_install.components.access import UPSTREAM, Mirror
from pai_install.components.catalogue import Catalogue
from pai_install.components.fetch import fetch
from pai_install.components.model import ComponentSet, PinnedComponent, Selection
from pai_install.components.store import Contents, StagedFile, Store
from pai_install.components.upstream import Releases, take_member
from tests.errors import raises

from .registry import serve_image

if TYPE_CHECKING:
    from .conftest import WebServer

PROGRAM = b"\x7fELF upstream program" * 50


def tar_of(name: str, content: bytes) -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return data.getvalue()


def deb_of(folder: Path, package: str, *programs: str) -> bytes:
    root = folder / package
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text(
        f"Package: {package}\nVersion: 1\nArchitecture: amd64\nMaintainer: x <x@example.org>\nDescription: x\n"
    )
    (root / "usr/bin").mkdir(parents=True)
    for program in programs:
        (root / "usr/bin" / program).write_bytes(program.encode())
    subprocess.run(["dpkg-deb", "-b", root, f"{root}.deb"], check=True, capture_output=True)
    return Path(f"{root}.deb").read_bytes()


def catalogue(name: str, component: dict[str, Any]) -> Catalogue:
    description = {"summary": "x", "licence": "MIT", "home": "https://x", "build": BUILD, **component}
    return Catalogue.model_validate(
        {
            "schema_version": 1,
            "go": {"version": "1.26.8", "toolchain": {}},
            "userland": {"packages": []},
            "kubernetes": {"default": "1.36", "sets": {}},
            "components": {name: description},
        }
    )


BUILD = {"kind": "go", "packages": [], "disk_mb": 1}


def sums(**contents: bytes) -> dict[str, Any]:
    return {name: {"amd64": hashlib.sha256(data).hexdigest()} for name, data in contents.items()}


def bring(source: Releases, name: str, cache: Path) -> ComponentSet:
    return fetch(Selection("1.36.4", "upstream", (PinnedComponent(name, "1.2.3"),)), source, cache)


def served(web: WebServer, path: str) -> str:
    return f"{web.url}/{path}"


def file_component(web: WebServer, spec: dict[str, Any], **contents: bytes) -> dict[str, Any]:
    return {
        "files": {"runc": {"programs": ["runc"], "url": served(web, "v{version}/runc.{arch}"), **spec}},
        "versions": {"1.2.3": {"sha256": sums(**contents)}},
    }


def test_a_program_is_downloaded_verified_and_executable(web: WebServer, tmp_path: Path) -> None:
    web.pages["/v1.2.3/runc.amd64"] = PROGRAM
    source = Releases(catalogue("runc", file_component(web, {"kind": "binary"}, runc=PROGRAM)), architecture="amd64")
    (file,) = bring(source, "runc", tmp_path).files
    assert (file.name, file.version, file.kind) == ("runc", "1.2.3", "binary")
    assert file.path.read_bytes() == PROGRAM
    assert file.path.stat().st_mode & 0o777 == 0o755
    assert file.sha256 == hashlib.sha256(PROGRAM).hexdigest()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["entries", "lock"]


def test_a_second_fetch_asks_nobody(web: WebServer, tmp_path: Path) -> None:
    web.pages["/v1.2.3/runc.amd64"] = PROGRAM
    source = Releases(catalogue("runc", file_component(web, {"kind": "binary"}, runc=PROGRAM)), architecture="amd64")
    first = bring(source, "runc", tmp_path)
    web.asked.clear()
    assert bring(source, "runc", tmp_path) == first
    assert web.asked == []


def test_cache_poison_a_program_that_is_not_the_pinned_one_is_fetched_again(web: WebServer, tmp_path: Path) -> None:
    """As a bundle of another version of pai-install could leave it, its record included."""
    web.pages["/v1.2.3/runc.amd64"] = PROGRAM
    source = Releases(catalogue("runc", file_component(web, {"kind": "binary"}, runc=PROGRAM)), architecture="amd64")
    path = bring(source, "runc", tmp_path).file("runc").path
    evil = tmp_path / "evil"
    (evil / "files").mkdir(parents=True)
    (evil / "files/runc").write_bytes(b"#!/bin/sh\necho EVIL\n")
    Store(tmp_path).publish(
        path.parents[1].name, evil, Contents((StagedFile("runc", "1.2.3", "binary", evil / "files/runc"),))
    )
    assert path.read_bytes() != PROGRAM
    assert bring(source, "runc", tmp_path).file("runc").path.read_bytes() == PROGRAM


def test_a_changed_program_is_refused(web: WebServer, tmp_path: Path) -> None:
    web.pages["/v1.2.3/runc.amd64"] = PROGRAM + b"!"
    source = Releases(catalogue("runc", file_component(web, {"kind": "binary"}, runc=PROGRAM)), architecture="amd64")
    with raises("download-checksum-mismatch"):
        bring(source, "runc", tmp_path)
    assert list((tmp_path / "entries").iterdir()) == []


def test_a_failed_fetch_keeps_the_finished_downloads(web: WebServer, tmp_path: Path) -> None:
    web.pages["/one"] = PROGRAM
    component = {
        "files": {
            "one": {"kind": "binary", "programs": ["one"], "url": served(web, "one")},
            "two": {"kind": "binary", "programs": ["two"], "url": served(web, "two")},
        },
        "versions": {"1.2.3": {"sha256": sums(one=PROGRAM, two=b"second")}},
    }
    source = Releases(catalogue("pair", component), architecture="amd64")
    with raises("download-refused", "404"):
        bring(source, "pair", tmp_path)
    web.pages["/two"] = b"second"
    assert len(bring(source, "pair", tmp_path).files) == 2
    assert web.paths().count("/one") == 1


def test_an_archive_stays_as_upstream_made_it(web: WebServer, tmp_path: Path) -> None:
    archive = tar_of("bin/containerd", PROGRAM)
    web.pages["/v1.2.3/runc.amd64"] = archive
    source = Releases(catalogue("runc", file_component(web, {"kind": "tar.gz"}, runc=archive)), architecture="amd64")
    (file,) = bring(source, "runc", tmp_path).files
    assert file.path.read_bytes() == archive
    assert file.sha256 == hashlib.sha256(archive).hexdigest()


@pytest.mark.parametrize("prefix", ["", "./"])
def test_a_program_is_taken_out_of_its_archive(web: WebServer, tmp_path: Path, prefix: str) -> None:
    archive = tar_of(f"{prefix}etcd-v1.2.3/etcdctl", PROGRAM)
    web.pages["/v1.2.3/runc.amd64"] = archive
    spec = {"kind": "binary", "member": "etcd-v{version}/etcdctl"}
    source = Releases(catalogue("runc", file_component(web, spec, runc=archive)), architecture="amd64")
    (file,) = bring(source, "runc", tmp_path).files
    assert file.path.read_bytes() == PROGRAM


def test_an_archive_without_the_program_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(tar_of("README", b"x"))
    with raises("archive-member-missing", "a.tar.gz"):
        take_member(tmp_path / "a.tar.gz", "registry", tmp_path / "registry")


def debian_component(web: WebServer, **packages: bytes) -> dict[str, Any]:
    return {
        "files": {
            "toolkit": {
                "kind": "tar.gz",
                "programs": ["nvidia-ctk", "nvidia-container-runtime", "only-here"],
                "not_upstream": ["only-here"],
                "packages": {name: served(web, f"{name}_{{version}}_{{arch}}.deb") for name in packages},
                "folder": "bin",
            }
        },
        "versions": {"1.2.3": {"sha256": sums(**packages)}},
    }


def test_debian_packages_become_an_archive_of_programs(web: WebServer, tmp_path: Path) -> None:
    base = deb_of(tmp_path, "base", "nvidia-ctk", "unwanted")
    hook = deb_of(tmp_path, "hook", "nvidia-container-runtime")
    web.pages |= {"/base_1.2.3_amd64.deb": base, "/hook_1.2.3_amd64.deb": hook}
    source = Releases(catalogue("toolkit", debian_component(web, base=base, hook=hook)), architecture="amd64")
    assert source.debian_packages(PinnedComponent("toolkit", "1.2.3")) == ("dpkg",)
    (file,) = bring(source, "toolkit", tmp_path / "cache").files
    with tarfile.open(file.path) as archive:
        assert archive.getnames() == ["bin/nvidia-container-runtime", "bin/nvidia-ctk"]


def test_a_package_without_a_program_is_an_error(web: WebServer, tmp_path: Path) -> None:
    base = deb_of(tmp_path, "base", "nvidia-ctk")
    web.pages["/base_1.2.3_amd64.deb"] = base
    source = Releases(catalogue("toolkit", debian_component(web, base=base)), architecture="amd64")
    with raises("package-path-missing", "bin/nvidia-container-runtime"):
        bring(source, "toolkit", tmp_path / "cache")


def test_an_architecture_without_a_sum_is_refused(web: WebServer, tmp_path: Path) -> None:
    source = Releases(catalogue("runc", file_component(web, {"kind": "binary"}, runc=PROGRAM)), architecture="arm64")
    with raises("checksum-not-pinned", "1.2.3", "arm64"):
        bring(source, "runc", tmp_path)
    assert web.asked == []


@pytest.mark.parametrize(
    ("url", "mirror", "expected"),
    [
        ("https://dl.k8s.io/release/x", "", "https://dl.k8s.io/release/x"),
        ("https://dl.k8s.io/release/x", "https://m.example/pai", "https://m.example/pai/dl.k8s.io/release/x"),
        ("https://dl.k8s.io/release/x", "http://10.0.0.9:80/", "http://10.0.0.9:80/dl.k8s.io/release/x"),
    ],
)
def test_a_mirror_has_the_same_paths_below_the_host(url: str, mirror: str, expected: str) -> None:
    assert Mirror(mirror).of(url) == expected


def test_a_mirror_serves_files_and_images(web: WebServer, tmp_path: Path) -> None:
    component = {
        "files": {"kubeadm": {"kind": "binary", "programs": ["k"], "url": "https://dl.k8s.io/v{version}/kubeadm"}},
        "images": {"pause": {"tag": "v{version}", "from": "registry.k8s.io/pause", "programs": {"pause": "/pause"}}},
        "versions": {"1.2.3": {"sha256": sums(kubeadm=PROGRAM)}},
    }
    web.pages["/pai/dl.k8s.io/v1.2.3/kubeadm"] = PROGRAM
    expected = serve_image(web, "pai/registry.k8s.io/pause", "v1.2.3")
    source = Releases(catalogue("kubernetes", component), Mirror(f"{web.url}/pai"), "amd64")
    assert source.name == "mirror"
    result = bring(source, "kubernetes", tmp_path)
    assert result.file("kubeadm").path.read_bytes() == PROGRAM
    assert (result.image("pause").tag, result.image("pause").manifest_digest) == ("v1.2.3", expected)
    assert (result.image("pause").layout / "oci-layout").is_file()


def test_what_a_mirror_brought_serves_upstream_too(web: WebServer) -> None:
    description = catalogue("runc", file_component(web, {"kind": "binary"}, runc=PROGRAM))
    pick = PinnedComponent("runc", "1.2.3")
    plain, mirror = (
        Releases(description, UPSTREAM, "amd64"),
        Releases(description, Mirror("https://m.example"), "amd64"),
    )
    assert plain.key(pick) == mirror.key(pick)
    assert (plain.name, mirror.name) == ("upstream", "mirror")


def test_another_sum_is_another_result(web: WebServer) -> None:
    pick = PinnedComponent("runc", "1.2.3")
    keys = {
        Releases(catalogue("runc", file_component(web, {"kind": "binary"}, runc=body)), UPSTREAM, "amd64").key(pick)
        for body in (PROGRAM, b"other")
    }
    assert len(keys) == 2
