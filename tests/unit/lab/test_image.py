"""The base image: its recipe decides its name, a half-built one never counts."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import PaiError
from pai_install.lab import image
from pai_install.lab.apt import AptAccess, default_sources
from pai_install.lab.image import (
    ensure_image,
    image_path,
    mmdebstrap_command,
    mounted_images,
    recipe_hash,
    unused_images,
)
from tests.errors import raises

ACCESS = AptAccess(default_sources(), 'Acquire::Retries "5";\n', {}, {"corp.crt": b"PEM"})
KEYRING = Path("/keys.gpg")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(image, "_links_in_use", list)
    return tmp_path / "pai-install/lab"


def test_cache_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert image.cache_dir() == tmp_path / ".cache/pai-install/lab"


def test_same_recipe_same_image(cache: Path) -> None:
    assert image_path(ACCESS) == image_path(replace(ACCESS, certificates={"corp.crt": b"PEM"}))
    assert image_path(ACCESS).parent == cache


@pytest.mark.parametrize(
    "changed",
    [
        replace(ACCESS, options=""),
        replace(ACCESS, certificates={"corp.crt": b"NEW"}),
        replace(ACCESS, certificates={}),
        replace(ACCESS, files={"/etc/apt/auth.conf.d/x.conf": b"secret"}),
        replace(ACCESS, sources=default_sources()[:1]),
    ],
)
def test_anything_that_shapes_the_image_gives_another_name(changed: AptAccess) -> None:
    assert recipe_hash(changed) != recipe_hash(ACCESS)


def test_packages_belong_to_the_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    before = recipe_hash(ACCESS)
    monkeypatch.setattr(image, "PREFETCHED", (*image.PREFETCHED, "more"))
    assert recipe_hash(ACCESS) != before


def test_mmdebstrap_uses_the_boxs_archive_and_keyring() -> None:
    words = mmdebstrap_command(ACCESS, KEYRING, Path("/settings"), Path("/target"))
    assert words[0] == "mmdebstrap"
    assert words[-3:] == ["trixie", "/target", ACCESS.bootstrap.line(KEYRING)]
    assert f"--keyring={KEYRING}" in words
    assert "--aptopt=/settings/options.conf" in words


def test_packages_are_fetched_after_the_boxs_settings_are_in_and_keys_go_last() -> None:
    hooks = [
        word
        for word in mmdebstrap_command(ACCESS, KEYRING, Path("/s"), Path("/t"))
        if word.startswith("--customize-hook")
    ]
    text = "\n".join(hooks)
    assert text.index("cp -a /s/tree/.") < text.index("update-ca-certificates") < text.index("--download-only")
    assert "docker.io" in text
    assert text.index("--download-only") < text.index("ssh_host_*")
    assert "machine-id" in text


@pytest.fixture
def builder(ran: Any, cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """mmdebstrap leaves a tree behind; what its settings folder held at that moment is in the list."""
    seen: list[dict[str, Any]] = []

    def run(argv: list[str], **options: Any) -> Any:
        settings = next(Path(word.partition("=")[2]).parent for word in argv if word.startswith("--aptopt="))
        files = [path for path in settings.rglob("*") if path.is_file()]
        seen.append({str(path.relative_to(settings)): (path.read_text(), path.stat().st_mode) for path in files})
        (Path(argv[-2]) / "etc").mkdir()
        return ran(argv, **options)

    monkeypatch.setattr(image, "run", run)
    return seen


def test_image_is_built_once(cache: Path, builder: list[dict[str, Any]]) -> None:
    said: list[str] = []
    path = ensure_image(ACCESS, said.append)
    assert (path / "etc").is_dir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert ensure_image(ACCESS, said.append) == path
    assert len(builder) == len(said) == 1


def test_settings_of_the_box_reach_the_image_and_leave_nothing_behind(
    cache: Path, builder: list[dict[str, Any]]
) -> None:
    secret = {"/etc/apt/auth.conf.d/x.conf": b"machine a login b password c"}
    ensure_image(replace(ACCESS, files=secret), lambda _line: None)
    files = builder[0]
    assert files["tree/etc/apt/sources.list.d/debian.sources"][0] == ACCESS.sources_file()
    assert 'Acquire::Retries "5";' in files["tree/etc/apt/apt.conf.d/90lab"][0]
    assert files["tree/usr/local/share/ca-certificates/corp.crt"][0] == "PEM"
    assert stat.S_IMODE(files["tree/etc/apt/auth.conf.d/x.conf"][1]) == 0o600
    assert [name for name in os.listdir(cache) if "settings" in name or "partial" in name] == []  # noqa: PTH208


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ('Acquire::http::Proxy "http://user:word@proxy.example";\n', 0o600),
        ('Acquire::http::Proxy "http://proxy.example";\n', 0o644),
    ],
)
def test_a_proxys_password_is_not_for_everyone(
    cache: Path, builder: list[dict[str, Any]], options: str, mode: int
) -> None:
    ensure_image(replace(ACCESS, options=options), lambda _line: None)
    assert stat.S_IMODE(builder[0]["tree/etc/apt/apt.conf.d/90lab"][1]) == mode
    assert stat.S_IMODE(builder[0]["options.conf"][1]) == 0o600


def test_a_failed_build_is_no_image_and_the_next_one_starts_clean(
    cache: Path, ran: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "run", ran)
    monkeypatch.setattr(image, "unreachable", lambda _access: "")
    ran.answer("mmdebstrap", 25)
    with pytest.raises(PaiError, match="mmdebstrap"):
        ensure_image(ACCESS, lambda _line: None)
    assert not image_path(ACCESS).exists()
    left = image_path(ACCESS).with_name(f"{image_path(ACCESS).name}.partial")
    (left / "half").touch()
    ran.answer("mmdebstrap", 0)
    assert not (ensure_image(ACCESS, lambda _line: None) / "half").exists()


def test_old_images_go_unless_a_machine_stands_on_them(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("base-a", "base-b", "base-c.partial", "base-now")]
    for path in [*paths, tmp_path / "other"]:
        path.mkdir()
    assert unused_images(paths[3], tmp_path, [paths[0]]) == (paths[1], paths[2])


def test_a_build_without_a_way_to_the_archive_says_so(cache: Path, ran: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image, "run", ran)
    monkeypatch.setattr(image, "unreachable", lambda _access: "Could not resolve 'deb.debian.org'")
    ran.answer("mmdebstrap", 25)
    with raises("lab-archive-unreachable") as told:
        ensure_image(ACCESS, lambda _line: None)
    assert "tar file" in (told.value.remedy or "")


def test_an_ubuntu_has_its_own_sources_and_keys(
    cache: Path, builder: list[dict[str, Any]], ran: Any, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setattr(image, "box_keyring", lambda _access, folder: folder / "keyring.gpg")
    access = AptAccess(default_sources("noble"), "", {}, {}, "noble")
    said: list[str] = []
    assert ensure_image(access, said.append).name.startswith("base-noble-")
    assert said == snapshot
    assert "Components: main universe" in builder[0]["tree/etc/apt/sources.list.d/ubuntu.sources"][0]
    command = ran.matching("mmdebstrap")[0]
    assert command == snapshot
    assert ",apt,ubuntu-keyring" in command
    assert "docker-cli" not in command


def test_packages_of_debian_s_images_are_those_of_all() -> None:
    assert image.included("trixie") == image.INCLUDED


def test_image_of_a_lab_in_another_mount_namespace_is_in_use(tmp_path: Path) -> None:
    for process, namespace in (("1", "mnt:[1]"), ("7", "mnt:[1]"), ("9", "mnt:[2]")):
        (tmp_path / process / "ns").mkdir(parents=True)
        (tmp_path / process / "ns/mnt").symlink_to(namespace)
        lower = f"lowerdir=/cache/base-{namespace[5]},upperdir=/u"
        (tmp_path / process / "mounts").write_text(f"pai-lab /root overlay rw,{lower} 0 0\n")
    (tmp_path / "11").mkdir()
    assert sorted(mounted_images(tmp_path)) == [Path("/cache/base-1"), Path("/cache/base-2")]
