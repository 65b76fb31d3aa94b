"""A base image's archive: whether it answers, and which keys count."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode
from pai_install.lab import archive
from pai_install.lab.apt import AptAccess, default_sources
from pai_install.lab.archive import box_keyring, known_keys, no_way, unreachable
from pai_install.lab.distribution import UBUNTU
from pai_install.system.proc import Completed
from tests.errors import raises

NOBLE = AptAccess(default_sources("noble"), "", {}, {}, "noble")
SAID = """W: Download is performed unsandboxed as root
E: Failed to fetch http://archive.ubuntu.com/ubuntu/dists/noble/InRelease  Could not resolve 'archive.ubuntu.com'
E: Download Failed
"""
needs_gpg = pytest.mark.skipif(not (shutil.which("gpg") and shutil.which("dpkg-deb")), reason="gpg and dpkg-deb")


def test_an_archive_is_asked_as_apt_asks_it(monkeypatch: pytest.MonkeyPatch, ran: Any) -> None:
    monkeypatch.setattr(archive, "run", ran)
    assert unreachable(NOBLE) == ""
    asked = ran.commands[0]
    assert asked.startswith("/usr/lib/apt/apt-helper ")
    assert "download-file http://archive.ubuntu.com/ubuntu/dists/noble/InRelease " in asked
    assert "Timeout=15" in asked


def test_an_archive_that_does_not_answer_is_named_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "run", lambda argv, **_options: Completed(tuple(map(str, argv)), 100, "", SAID))
    why = unreachable(NOBLE)
    assert why.startswith("Failed to fetch http://archive.ubuntu.com/ubuntu/dists/noble/InRelease")
    assert "Could not resolve" in why
    told = no_way(NOBLE, why)
    assert told.exit_code == ExitCode.PREFLIGHT_FAILED
    assert "Ubuntu's archive of noble" in told.message


def test_silence_of_the_program_is_a_reason_too(monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion) -> None:
    monkeypatch.setattr(archive, "run", lambda argv, **_options: Completed(tuple(map(str, argv)), 1, "", ""))
    assert unreachable(NOBLE) == snapshot


def of_keyring(path: Path) -> AptAccess:
    """Access to noble by that keyring."""
    return replace(NOBLE, sources=tuple(replace(source, signed_by=str(path)) for source in NOBLE.sources))


def test_a_box_that_has_the_keys_fetches_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: Any) -> None:
    monkeypatch.setattr(archive, "run", ran)
    own = tmp_path / "ubuntu-archive-keyring.gpg"
    own.touch()
    assert box_keyring(of_keyring(own), tmp_path / "keys") == own
    assert ran.commands == []


def test_keys_that_cannot_be_fetched_are_no_way_to_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "run", lambda argv, **_options: Completed(tuple(map(str, argv)), 100, "", SAID))
    with raises("lab-archive-unreachable"):
        box_keyring(of_keyring(tmp_path / "none.gpg"), tmp_path / "keys")


def test_the_package_of_keys_is_fetched_by_its_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ran: Any
) -> None:
    monkeypatch.setattr(archive, "run", ran)
    keyring = box_keyring(of_keyring(tmp_path / "none.gpg"), tmp_path / "keys")
    assert keyring == tmp_path / "keys/keyring.gpg"
    assert ran.commands[0].endswith(f"/keyring.deb SHA256:{UBUNTU.keyring_digest}")
    assert ran.matching("dpkg-deb --extract")
    assert ran.commands[-1].endswith(f"--export {' '.join(UBUNTU.fingerprints)}")


def test_a_keyring_of_nobody_is_left_to_mmdebstrap(tmp_path: Path) -> None:
    access = AptAccess(
        tuple(replace(one, signed_by=str(tmp_path / "corp.gpg")) for one in default_sources()), "", {}, {}
    )
    assert box_keyring(access, tmp_path / "keys") == tmp_path / "corp.gpg"


def made_key(home: Path, name: str) -> str:
    """Makes a key; its fingerprint."""
    words = ["gpg", "--homedir", str(home), "--batch", "--quiet"]
    subprocess.run(
        [*words, "--passphrase", "", "--quick-generate-key", name, "ed25519", "sign", "never"],
        check=True,
        capture_output=True,
    )
    listed = subprocess.run([*words, "--with-colons", "--list-keys", name], check=True, capture_output=True, text=True)
    return next(line.split(":")[9] for line in listed.stdout.splitlines() if line.startswith("fpr:"))


@pytest.fixture
def package(tmp_path: Path) -> tuple[Path, list[str]]:
    """A package with a keyring of two keys, and their fingerprints."""
    home, root = tmp_path / "home", tmp_path / "root"
    home.mkdir(mode=0o700)
    fingerprints = [made_key(home, name) for name in ("archive", "images")]
    keyring = root / UBUNTU.keyring.lstrip("/")
    keyring.parent.mkdir(parents=True)
    subprocess.run(["gpg", "--homedir", str(home), "--batch", "--output", str(keyring), "--export"], check=True)
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "all"], check=False)
    (root / "DEBIAN").mkdir()
    text = "Package: keys\nVersion: 1\nArchitecture: all\nMaintainer: a <a@example.org>\nDescription: keys\n"
    (root / "DEBIAN/control").write_text(text)
    subprocess.run(["dpkg-deb", "--build", str(root), str(tmp_path / "keys.deb")], check=True, capture_output=True)
    (tmp_path / "made").mkdir()
    return tmp_path / "keys.deb", fingerprints


def shown(keyring: Path) -> list[str]:
    """Fingerprints of a keyring's keys."""
    listed = subprocess.run(
        ["gpg", "--homedir", str(keyring.parent), "--batch", "--with-colons", "--show-keys", str(keyring)],
        check=True,
        capture_output=True,
        text=True,
    )
    return [line.split(":")[9] for line in listed.stdout.splitlines() if line.startswith("fpr:")]


@needs_gpg
def test_only_keys_that_are_known_count(tmp_path: Path, package: tuple[Path, list[str]]) -> None:
    packed, fingerprints = package
    keyring = known_keys(replace(UBUNTU, fingerprints=(fingerprints[0],)), packed, tmp_path / "made")
    assert shown(keyring) == [fingerprints[0]]
    left = subprocess.run(["pgrep", "--full", f"gpg-agent.*{tmp_path}"], check=False, capture_output=True, text=True)
    assert left.stdout == "", "an agent of gpg outlives the command"


@needs_gpg
def test_a_package_without_a_known_key_is_refused(tmp_path: Path, package: tuple[Path, list[str]]) -> None:
    packed, fingerprints = package
    with raises("lab-archive-keys-missing"):
        known_keys(replace(UBUNTU, fingerprints=(fingerprints[0], "A" * 40)), packed, tmp_path / "made")
