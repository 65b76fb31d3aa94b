from __future__ import annotations

import os
from pathlib import Path

import pytest

from pai_install.components.build import build_c, build_go, downloads, fill, go_arguments, take_deb
from pai_install.components.catalogue import CBuild, DebBuild, GoBuild, GoToolchain
from pai_install.components.progress import silent
from pai_install.components.source import BuildContext
from pai_install.components.store import Store
from tests.errors import raises

TOOLCHAIN = GoToolchain(version="1.0", toolchain={})


@pytest.fixture
def context(tmp_path: Path) -> BuildContext:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    return BuildContext(Store(tmp_path / "cache"), scratch, silent)


@pytest.fixture
def wrapper(tmp_path: Path) -> Path:
    folder = tmp_path / "etcd-3.6.8"
    folder.mkdir()
    (folder / "go.mod").write_text("module wrapper\n")
    (folder / "go.sum").write_text("sums\n")
    return folder


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def fake_program(folder: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    if not os.environ["PATH"].startswith(str(folder)):
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def go_build(**values: object) -> GoBuild:
    return GoBuild.model_validate({"kind": "go", "packages": ["example.org/x"], "disk_mb": 1, **values})


@pytest.mark.parametrize(
    ("template", "expected"),
    [("v{version}", "v1.36.3"), ("{major}", "1"), ("{minor}", "36"), ("clean", "clean"), ("{version}-0", "1.36.3-0")],
)
def test_a_version_is_put_into_templates(template: str, expected: str) -> None:
    assert fill(template, "1.36.3") == expected


def test_a_version_that_is_a_word_has_no_numbers() -> None:
    assert fill("{version}", "stable") == "stable"


def test_go_is_told_to_build_reproducibly_from_the_committed_sums() -> None:
    words = go_arguments(go_build(), "1.2.3", Path("/out"))
    assert words[0] == "build"
    assert {"-trimpath", "-mod=readonly", "-buildvcs=false", "-modcacherw"} <= set(words)
    assert "-o=/out/" in words
    assert words[-1] == "example.org/x"
    assert "-ldflags=-s -w" in words


def test_go_is_told_tags_and_stamps() -> None:
    words = go_arguments(
        go_build(tags=["netgo", "seccomp"], stamps={"x/version.V": "v{version}"}), "1.2.3", Path("/out")
    )
    assert "-tags=netgo,seccomp" in words
    assert "-ldflags=-s -w -X=x/version.V=v1.2.3" in words


def test_a_static_program_is_linked_so() -> None:
    words = go_arguments(go_build(static=True, linker=["-Wl,-z,lazy"]), "1", Path("/out"))
    assert "-ldflags=-s -w '-extldflags=-static -Wl,-z,lazy'" in words


# Stands for the Go client: says what it was called with, makes what `go build -o=DIR/` would make.
FAKE_GO = """
case $1 in
env) echo go1.26.8 ;;
mod) printf '{"Dir": "%s"}' "$MODULE" ;;
build)
  out=$(for word in "$@"; do case $word in -o=*) echo "${word#-o=}" ;; esac; done)
  env > "$out/../env"; cp go.mod go.sum "$out/.."; echo "$@" > "$out/../words"
  i=0; while [ $i -lt 250 ]; do echo "package/$i"; i=$((i+1)); done
  echo "go: downloading example.org/x v1.0.0"
  touch "$out/server" "$out/etcdctl"
  exit ${GO_EXIT:-0} ;;
esac
"""


def test_a_wrapper_is_built_and_programs_renamed(
    tmp_path: Path, context: BuildContext, wrapper: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_program(tmp_path / "bin", "go", FAKE_GO, monkeypatch)
    build = go_build(packages=["go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/etcdctl/v3"], rename={"server": "etcd"})
    told: list[str] = []
    build_go(build, "3.6.8", wrapper, TOOLCHAIN, BuildContext(context.store, context.scratch, told.append), out)
    assert sorted(path.name for path in out.iterdir()) == ["etcd", "etcdctl"]
    assert (tmp_path / "go.sum").read_text() == "sums\n"
    assert f"GOMODCACHE={context.scratch}/mod" in (tmp_path / "env").read_text()
    assert told == [
        "etcd-3.6.8: building etcd, etcdctl",
        "etcd-3.6.8: 100 packages compiled",
        "etcd-3.6.8: 200 packages compiled",
    ]


def test_the_wrapper_itself_is_never_written_to(
    tmp_path: Path, context: BuildContext, wrapper: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_program(tmp_path / "bin", "go", FAKE_GO, monkeypatch)
    before = {path.name: path.stat().st_mtime_ns for path in wrapper.iterdir()}
    build_go(go_build(), "3.6.8", wrapper, TOOLCHAIN, context, out)
    assert {path.name: path.stat().st_mtime_ns for path in wrapper.iterdir()} == before


def test_a_failed_build_shows_the_last_lines_of_go(
    tmp_path: Path, context: BuildContext, wrapper: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_program(tmp_path / "bin", "go", FAKE_GO, monkeypatch)
    monkeypatch.setenv("GO_EXIT", "1")
    with raises("program-failed", "1") as failed:
        build_go(go_build(), "3.6.8", wrapper, TOOLCHAIN, context, out)
    assert "package/249" in failed.value.details


def test_a_c_program_is_compiled_from_its_module(
    tmp_path: Path, context: BuildContext, wrapper: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_program(tmp_path / "bin", "go", FAKE_GO, monkeypatch)
    fake_program(tmp_path / "bin", "gcc", f'echo "$@" > {tmp_path}/gcc-words', monkeypatch)
    monkeypatch.setenv("MODULE", str(tmp_path / "k8s"))
    build = CBuild(
        kind="c",
        module="k8s.io/kubernetes",
        sources=("build/pause.c",),
        flags=("-static", "-DVERSION=v{version}"),
        program="pause",
        disk_mb=1,
    )
    build_c(build, "3.10.2", wrapper, TOOLCHAIN, context, out)
    words = (tmp_path / "gcc-words").read_text().split()
    assert words == ["-static", "-DVERSION=v3.10.2", "-s", "-o", str(out / "pause"), f"{tmp_path}/k8s/build/pause.c"]


def test_a_program_is_taken_out_of_a_debian_package(
    context: BuildContext, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def fetched(names: list[str], folder: Path, _: object) -> list[Path]:
        asked.extend(names)
        return [folder / "busybox-static_1.37_amd64.deb", folder / "libc6_2.41_amd64.deb"]

    def unpacked(packages: list[Path], root: Path) -> None:
        assert [path.name for path in packages] == ["busybox-static_1.37_amd64.deb"]
        (root / "usr/bin").mkdir(parents=True)
        (root / "usr/bin/busybox").write_bytes(b"shell")

    monkeypatch.setattr("pai_install.components.build.fetch_packages", fetched)
    monkeypatch.setattr("pai_install.components.build.unpack", unpacked)
    build = DebBuild(kind="deb", package="busybox-static", member="bin/busybox", program="busybox", disk_mb=1)
    take_deb(build, context, out)
    assert asked == ["busybox-static"]
    assert (out / "busybox").read_bytes() == b"shell"


def test_a_program_with_a_version_in_its_name_is_taken_out_of_what_the_package_needs(
    context: BuildContext, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fetched(_: object, folder: Path, __: object) -> list[Path]:
        return [folder / "python3-minimal_3.11_amd64.deb", folder / "python3.11-minimal_3.11_amd64.deb"]

    def unpacked(packages: list[Path], root: Path) -> None:
        (root / "usr/bin").mkdir(parents=True)
        if packages[0].name.startswith("python3-minimal_"):
            (root / "usr/bin/python3.link").symlink_to("python3.11")
        else:
            (root / "usr/bin/python3.11").write_bytes(b"interpreter")

    monkeypatch.setattr("pai_install.components.build.fetch_packages", fetched)
    monkeypatch.setattr("pai_install.components.build.unpack", unpacked)
    build = DebBuild(kind="deb", package="python3-minimal", member="bin/python3.*", program="python3", disk_mb=1)
    take_deb(build, context, out)
    assert (out / "python3").read_bytes() == b"interpreter"


def test_a_debian_package_without_the_program_is_an_error(
    context: BuildContext, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_install.components.build.fetch_packages", lambda *_: [])
    monkeypatch.setattr("pai_install.components.build.unpack", lambda *_: None)
    build = DebBuild(kind="deb", package="busybox-static", member="bin/busybox", program="busybox", disk_mb=1)
    with raises("deb-member-missing", "busybox-static", "bin/busybox"):
        take_deb(build, context, out)


def test_modules_are_downloaded_beside_a_block(
    tmp_path: Path, context: BuildContext, wrapper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = 'case $1 in env) echo go9.9;; list) cat go.sum >$GOMODCACHE/sums; echo "$@" >$GOMODCACHE/words;; esac'
    fake_program(tmp_path / "bin", "go", script, monkeypatch)
    with downloads(go_build(tags=["netgo"]), wrapper, TOOLCHAIN, context) as modules:
        pass
    assert (modules / "sums").read_text() == "sums\n"
    words = (modules / "words").read_text().split()
    assert words == ["list", "-deps", "-mod=readonly", "-modcacherw", "-tags=netgo", "example.org/x"]


def test_a_failed_block_ends_the_download(
    tmp_path: Path, context: BuildContext, wrapper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_program(tmp_path / "bin", "go", "case $1 in env) echo go9.9;; list) exec sleep 600;; esac", monkeypatch)
    with pytest.raises(KeyboardInterrupt), downloads(go_build(), wrapper, TOOLCHAIN, context):
        raise KeyboardInterrupt
