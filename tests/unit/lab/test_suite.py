"""Base images of machines: by suite, or unpacked from a file."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import pytest

from pai_install.lab import image, suite
from pai_install.lab.apt import AptAccess
from pai_install.lab.distribution import SUITES
from pai_install.lab.suite import base_path, ensure_base, is_of, missing_in
from tests.errors import raises

PROGRAMS = ("usr/lib/systemd/systemd", "usr/sbin/sshd", "usr/bin/sudo", "usr/bin/python3")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(image, "_links_in_use", list)
    return tmp_path / "cache/pai-install/lab"


def packed(folder: Path, *paths: str) -> str:
    """A root file system with empty programs, as a compressed tar file."""
    for path in (*paths, "etc/machine-id", "etc/ssh/ssh_host_rsa_key", "etc/os-release"):
        (folder / "root" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "root" / path).touch()
    with tarfile.open(folder / "system.tar.gz", "w:gz") as made:
        made.add(folder / "root", ".")
    return str(folder / "system.tar.gz")


def test_every_suite_has_an_image_of_its_own() -> None:
    paths = {name: base_path(name) for name in SUITES}
    assert len(set(paths.values())) == len(SUITES)
    for name, path in paths.items():
        assert is_of(name, path)
        assert [other for other in SUITES if is_of(other, path)] == [name]


def test_each_suite_is_asked_for_at_its_own_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def unreachable(access: AptAccess) -> str:
        asked.append(access.bootstrap.suites[0])
        return "no way"

    monkeypatch.setattr(suite, "unreachable", unreachable)
    assert [suite.no_archive(name) for name in SUITES] == ["no way"] * len(SUITES)
    assert asked == list(SUITES)


def test_a_packed_system_becomes_a_base_image_once(tmp_path: Path) -> None:
    word, said = packed(tmp_path, *PROGRAMS), list[str]()
    base = ensure_base(word, said.append)
    assert (base / "usr/sbin/sshd").exists()
    assert base.stat().st_mode & 0o777 == 0o755
    assert ensure_base(word, said.append) == base
    assert said == [f"unpacking {word}"]
    assert is_of(word, base)
    assert not is_of("trixie", base)


def test_what_tells_machines_apart_is_not_taken_over(tmp_path: Path) -> None:
    base = ensure_base(packed(tmp_path, *PROGRAMS), lambda _line: None)
    assert not (base / "etc/machine-id").exists()
    assert not list((base / "etc/ssh").glob("ssh_host_*"))
    assert (base / "etc/os-release").exists()


def test_a_system_that_cannot_start_is_refused_with_what_it_lacks(tmp_path: Path, cache: Path) -> None:
    with raises("lab-suite-without-systemd", "openssh-server", "python3"):
        ensure_base(packed(tmp_path, "usr/lib/systemd/systemd", "usr/bin/sudo"), lambda _line: None)
    assert [path for path in cache.glob("base-*") if not path.name.endswith(".partial")] == []


def test_programs_that_are_links_into_the_system_count(tmp_path: Path) -> None:
    for path in ("lib/systemd/systemd", "usr/sbin/sshd", "usr/bin/sudo", "usr/bin/python3"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).symlink_to("/nowhere/on/the/box")
    assert missing_in(tmp_path) == ()


def test_a_changed_file_is_another_image(tmp_path: Path) -> None:
    word = packed(tmp_path, *PROGRAMS)
    before = base_path(word)
    Path(word).write_bytes(b"another")
    assert base_path(word) != before


def test_debian_12_has_no_package_of_docker_s_client(monkeypatch: Any) -> None:
    assert "docker-cli" in image.prefetched("trixie")
    assert "docker-cli" not in image.prefetched("bookworm")
    assert set(image.prefetched("bookworm")) < set(image.prefetched("trixie"))
