"""Programs: verified before they are installed, installed once, repaired when somebody touched them."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pai_install.registry.identity import make_identity
from pai_install.registry.model import ServedNames

from .conftest import ModuleFailedError, Run
from .https import https_server


@pytest.fixture
def artifacts(run_module: Run, library: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs pai_artifacts with its ledger below the test's folder, without waiting between attempts."""

    def run(*items: dict[str, Any], check: bool = False, **words: Any) -> dict[str, Any]:
        loaded = library("pai_artifacts")
        monkeypatch.setattr(loaded, "STATE_DIR", str(tmp_path / "state"))
        monkeypatch.setattr(loaded, "LEDGER", str(tmp_path / "state" / "artifacts.json"))
        monkeypatch.setattr(loaded.time, "sleep", lambda _seconds: None)
        monkeypatch.setattr("tests.unit.modules.conftest.load", lambda *_words: loaded)
        return run_module("pai_artifacts", artifacts=list(items), check=check, **words)

    return run


def binary(tmp_path: Path, content: bytes = b"#!/bin/sh\n", name: str = "tool") -> dict[str, Any]:
    """A binary on a file:// URL, to be installed as bin/NAME."""
    source = tmp_path / f"{name}.download"
    source.write_bytes(content)
    return {
        "name": name,
        "version": "1.0",
        "url": source.as_uri(),
        "sha256": hashlib.sha256(content).hexdigest(),
        "kind": "binary",
        "dest": str(tmp_path / "bin" / name),
    }


def archive(tmp_path: Path, members: dict[str, bytes]) -> dict[str, Any]:
    """A tar.gz with these members."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return {**binary(tmp_path, buffer.getvalue(), "set"), "kind": "tar.gz", "dest": str(tmp_path / "opt")}


def test_binary_is_installed_once(artifacts: Run, tmp_path: Path) -> None:
    item = binary(tmp_path)
    first = artifacts(item)
    assert first["installed"] == ["tool 1.0"]
    assert (tmp_path / "bin" / "tool").stat().st_mode & 0o777 == 0o755
    second = artifacts(item)
    assert not second["changed"]
    assert second["managed"] == first["managed"]


def test_damaged_program_is_installed_again(artifacts: Run, tmp_path: Path) -> None:
    item = binary(tmp_path)
    artifacts(item)
    (tmp_path / "bin" / "tool").write_bytes(b"")
    assert artifacts(item)["changed"]
    assert (tmp_path / "bin" / "tool").read_bytes() == b"#!/bin/sh\n"


def test_new_version_takes_the_place_of_the_old_one(artifacts: Run, tmp_path: Path) -> None:
    artifacts(binary(tmp_path, b"old"))
    assert artifacts(binary(tmp_path, b"new"))["changed"]
    assert (tmp_path / "bin" / "tool").read_bytes() == b"new"


def test_wrong_bytes_are_never_installed(artifacts: Run, tmp_path: Path) -> None:
    item = {**binary(tmp_path), "sha256": "0" * 64}
    with pytest.raises(ModuleFailedError) as stop:
        artifacts(item)
    assert "its sha256 is" in stop.value.result["msg"]
    assert not (tmp_path / "bin" / "tool").exists()


def test_missing_download_names_program_and_url(artifacts: Run, tmp_path: Path) -> None:
    item = {**binary(tmp_path), "url": (tmp_path / "gone").as_uri()}
    with pytest.raises(ModuleFailedError) as stop:
        artifacts(item)
    assert stop.value.result["msg"].startswith(f"cannot get tool 1.0 from {item['url']}")


def test_archive_is_unpacked_and_every_file_watched(artifacts: Run, tmp_path: Path) -> None:
    item = archive(tmp_path, {"./bridge": b"b", "./host-local": b"h"})
    result = artifacts(item)
    assert {Path(entry["path"]).name for entry in result["managed"]} == {"bridge", "host-local"}
    (tmp_path / "opt" / "bridge").unlink()
    assert artifacts(item)["changed"]
    assert (tmp_path / "opt" / "bridge").read_bytes() == b"b"


def test_what_a_new_version_no_longer_has_is_removed(artifacts: Run, tmp_path: Path) -> None:
    """A program that stays behind on PATH takes the place of the machine's own."""
    artifacts(archive(tmp_path, {"runtime": b"1", "hook": b"1", "edited": b"1"}))
    (tmp_path / "opt/edited").write_bytes(b"by the admin")
    (tmp_path / "opt/other").write_bytes(b"of somebody else")
    artifacts(archive(tmp_path, {"runtime": b"2"}))
    left = {path.name for path in (tmp_path / "opt").iterdir()}
    assert left == {"runtime", "edited", "other"}


def test_what_another_artifact_has_stays(artifacts: Run, tmp_path: Path) -> None:
    first = archive(tmp_path, {"shared": b"1", "own": b"1"})
    artifacts(first)
    other = {**archive(tmp_path, {"shared": b"1"}), "name": "other"}
    artifacts(other)
    artifacts(archive(tmp_path, {"own": b"2"}))
    assert (tmp_path / "opt/shared").exists()


def test_archive_cannot_write_outside_its_folder(artifacts: Run, tmp_path: Path) -> None:
    artifacts(archive(tmp_path, {"../escaped": b"x", "inside": b"y"}))
    assert not (tmp_path / "escaped").exists()
    assert (tmp_path / "opt" / "inside").exists()


def test_check_mode_downloads_nothing(artifacts: Run, tmp_path: Path) -> None:
    result = artifacts(binary(tmp_path), check=True)
    assert result["changed"]
    assert not (tmp_path / "bin").exists()


def test_interrupted_run_goes_on_where_it_stopped(artifacts: Run, tmp_path: Path) -> None:
    good = binary(tmp_path)
    bad = {**binary(tmp_path, b"x", "other"), "sha256": "0" * 64}
    with pytest.raises(ModuleFailedError):
        artifacts(good, bad)
    assert not artifacts(good)["changed"]


class Program(BaseHTTPRequestHandler):
    """A stand-in for the component store: one program."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"#!/bin/sh\n")

    def log_message(self, *_words: Any) -> None:
        """Quiet."""


def test_only_a_store_of_the_sites_own_authority_is_asked(artifacts: Run, tmp_path: Path) -> None:
    names, now = ServedNames(("127.0.0.1",), ("127.0.0.1",)), datetime.now(UTC)
    own, another = make_identity(names, now), make_identity(names, now)
    known = tmp_path / "ca.pem"
    with https_server(tmp_path, own.store, Program) as url:
        item = {**binary(tmp_path), "url": f"{url}/v2/files/tool/blobs/sha256:x"}
        with pytest.raises(ModuleFailedError, match="certificate verify failed"):
            artifacts(item, ca=str(known))
        known.write_text(another.bundle)
        with pytest.raises(ModuleFailedError, match="certificate verify failed"):
            artifacts(item, ca=str(known))
        assert not (tmp_path / "bin").exists()
        known.write_text(own.bundle)
        assert artifacts(item, ca=str(known))["installed"] == ["tool 1.0"]
        known.unlink()
        other = {**item, "dest": str(tmp_path / "bin/other")}
        with pytest.raises(ModuleFailedError, match="certificate verify failed"):
            artifacts(other, ca=str(known), authorities=another.bundle)
        assert artifacts(other, ca=str(known), authorities=own.bundle)["installed"] == ["tool 1.0"]


@pytest.mark.parametrize("limits", [{"LARGEST": 10}, {"HEAD_START_S": -1e9}])
def test_download_ends_in_size_and_time(
    library: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: dict[str, float]
) -> None:
    loaded = library("pai_artifacts")
    for name, value in limits.items():
        monkeypatch.setattr(loaded, name, value)
    downloads = loaded.Downloads(SimpleNamespace(params={"timeout": 5}), str(tmp_path))
    with pytest.raises(OSError, match=r"longer than|slower than"):
        downloads.copy(binary(tmp_path, b"x" * 100)["url"], str(tmp_path / "got"))
