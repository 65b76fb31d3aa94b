from __future__ import annotations

import os
from pathlib import Path

import pytest

from pai_install.components.image import LayerEntry, write_archive
from pai_install.components.progress import silent
from pai_install.components.userland import base_nodes, fetch_packages, own_nodes, userland_nodes
from tests.errors import raises

# Stands for apt-get: writes down how it was called, fails as often as told, then "downloads" a package.
FAKE_APT = """#!/bin/sh
echo "$@" >> "$LOG"
case " $* " in
*" update "*) exit 0 ;;
*" install "*)
  left=$(cat "$FAILURES"); echo $((left - 1)) > "$FAILURES"
  [ "$left" -gt 0 ] && { echo "E: Unable to locate package" >&2; exit 100; }
  for word in "$@"; do case $word in Dir::Cache::archives=*) touch "${word#*=}/nftables_1_amd64.deb" ;; esac; done ;;
esac
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/apt-get").write_text(FAKE_APT)
    (tmp_path / "bin/apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    monkeypatch.setenv("FAILURES", str(tmp_path / "failures"))
    (tmp_path / "failures").write_text("0")
    return tmp_path / "log"


def tree(root: Path, *files: str) -> None:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(name.encode())


def paths(nodes: list[LayerEntry]) -> dict[str, LayerEntry]:
    return {node.path: node for node in nodes}


def test_packages_come_without_touching_this_box(calls: Path, tmp_path: Path) -> None:
    (package,) = fetch_packages(["nftables", "kmod"], tmp_path / "work", silent)
    assert package == tmp_path / "work/archives/nftables_1_amd64.deb"
    (line,) = calls.read_text().splitlines()
    assert line.endswith("--no-install-recommends --download-only -y install nftables kmod")
    assert f"Dir::State::status={tmp_path}/work/status" in line
    assert (tmp_path / "work/status").read_text() == ""


def test_lists_are_fetched_when_the_box_has_none(calls: Path, tmp_path: Path) -> None:
    (tmp_path / "failures").write_text("1")
    assert fetch_packages(["nftables"], tmp_path / "work", silent)
    first, update, second = calls.read_text().splitlines()
    lists = f"Dir::State::lists={tmp_path}/work/lists"
    assert lists not in first
    assert lists in update
    assert update.endswith(" update")
    assert lists in second


def test_packages_that_cannot_be_had_are_named_with_apts_words(calls: Path, tmp_path: Path) -> None:
    (tmp_path / "failures").write_text("9")
    with raises("apt-download-failed") as failed:
        fetch_packages(["nftables"], tmp_path / "work", silent)
    assert "Unable to locate package" in failed.value.details
    assert len(calls.read_text().splitlines()) == 3


def test_usr_is_merged(tmp_path: Path) -> None:
    tree(tmp_path, "sbin/modprobe", "lib/x86_64-linux-gnu/libc.so.6", "usr/sbin/nft", "etc/protocols")
    found = paths(userland_nodes(tmp_path))
    assert {"usr/sbin/modprobe", "usr/lib/x86_64-linux-gnu/libc.so.6", "usr/sbin/nft", "etc/protocols"} <= set(found)
    for name in ("bin", "sbin", "lib", "lib64"):
        assert found[name].link == f"usr/{name}"
    assert not any(path.startswith(("sbin/", "lib/")) for path in found)


def test_documentation_and_the_like_stay_out(tmp_path: Path) -> None:
    tree(
        tmp_path,
        "usr/share/doc/nftables/README",
        "var/lib/x",
        "usr/lib/systemd/system/nftables.service",
        "usr/sbin/nft",
    )
    files = [node.path for node in userland_nodes(tmp_path) if node.content]
    assert files == ["usr/sbin/nft"]


def test_modes_are_reduced_to_executable_or_not(tmp_path: Path) -> None:
    tree(tmp_path, "usr/sbin/nft", "etc/protocols")
    (tmp_path / "usr/sbin/nft").chmod(0o4711)
    (tmp_path / "etc/protocols").chmod(0o600)
    found = paths(userland_nodes(tmp_path))
    assert (found["usr/sbin/nft"].mode, found["etc/protocols"].mode) == (0o755, 0o644)


def test_links_between_libraries_are_kept(tmp_path: Path) -> None:
    tree(tmp_path, "usr/lib/libnft.so.1.0")
    (tmp_path / "usr/lib/libnft.so.1").symlink_to("libnft.so.1.0")
    assert paths(userland_nodes(tmp_path))["usr/lib/libnft.so.1"].link == "libnft.so.1.0"


def test_iptables_commands_are_the_nft_ones(tmp_path: Path) -> None:
    tree(tmp_path, "usr/sbin/xtables-nft-multi")
    found = paths(userland_nodes(tmp_path))
    for command in ("iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-restore"):
        assert found[f"usr/sbin/{command}"].link == "xtables-nft-multi"


def test_a_userland_without_iptables_gets_no_dangling_links(tmp_path: Path) -> None:
    tree(tmp_path, "usr/sbin/nft")
    assert "usr/sbin/iptables" not in paths(userland_nodes(tmp_path))


def test_every_image_has_users_and_a_place_for_temporary_files(tmp_path: Path) -> None:
    found = paths(base_nodes())
    content = found["etc/passwd"].content
    assert isinstance(content, bytes)
    assert content.startswith(b"root:x:0:0:")
    assert found["tmp"].mode == 0o1777
    assert write_archive(base_nodes(), tmp_path / "a") == write_archive(base_nodes(), tmp_path / "b")


def test_an_image_has_its_own_packages_and_of_others_the_libraries_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    libraries = "usr/lib/x86_64-linux-gnu"
    contents = {
        "haproxy": ("usr/sbin/haproxy", "etc/haproxy/haproxy.cfg"),
        "libc6": (f"{libraries}/libc.so.6", "lib64/ld-linux-x86-64.so.2", f"{libraries}/gconv/BIG5.so"),
        "perl-base": ("usr/bin/perl", f"{libraries}/perl-base/auto/IO/IO.so"),
    }

    def unpack(packages: list[Path], root: Path) -> None:
        for package in packages:
            tree(root, *contents[package.name.partition("_")[0]])

    monkeypatch.setattr("pai_install.components.userland.unpack", unpack)
    packages = [tmp_path / f"{name}_1.0_amd64.deb" for name in contents]
    found = {node.path for node in own_nodes(["haproxy"], packages, tmp_path / "work") if node.content}
    wanted = {*contents["haproxy"], f"{libraries}/libc.so.6", "usr/lib64/ld-linux-x86-64.so.2"}
    assert found - {node.path for node in base_nodes()} == wanted


def test_pattern_takes_packages_whole_that_were_fetched_with_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = {
        "python3-minimal": "usr/bin/python3",
        "libpython3.11-stdlib": "usr/lib/python3.11/ssl.py",
        "libpython3.11": "usr/lib/python3.11/config/x",
    }

    def unpack(packages: list[Path], root: Path) -> None:
        for package in packages:
            tree(root, contents[package.name.partition("_")[0]])

    monkeypatch.setattr("pai_install.components.userland.unpack", unpack)
    packages = [tmp_path / f"{name}_3.11_amd64.deb" for name in contents]
    names = ["python3-minimal", "libpython3.*-stdlib"]
    found = {node.path for node in own_nodes(names, packages, tmp_path / "work") if node.content}
    assert found - {node.path for node in base_nodes()} == {"usr/bin/python3", "usr/lib/python3.11/ssl.py"}


def test_apt_is_not_asked_for_patterns(calls: Path, tmp_path: Path) -> None:
    fetch_packages(["python3-minimal", "libpython3.*-stdlib"], tmp_path / "work", silent)
    assert calls.read_text().splitlines()[0].endswith(" install python3-minimal")


def test_busybox_is_the_shell_where_no_other_is(tmp_path: Path) -> None:
    tree(tmp_path, "bin/busybox", "bin/cat")
    found = paths(userland_nodes(tmp_path))
    assert found["usr/bin/sh"].link == "busybox"
    assert found["usr/bin/cat"].content
