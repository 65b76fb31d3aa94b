"""`pai-install monitoring export`: files with and without a client certificate, and a folder that is none."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.errors import ExitCode
from pai_install.registry.compile import served_names
from pai_install.registry.identity import open_identity
from pai_install.run.state import open_state
from pai_install.site import load_site
from tests.unit.cli.stub_environment import World, run, write_site


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = write_site(tmp_path / "cluster")
    (folder / "services-configuration.yaml").write_text("monitoring: true\n")
    return folder


def export(site: Path, folder: Path) -> int:
    return run(["monitoring", "export", "--to", str(folder), "--site", str(site)])


def test_a_key_is_its_owners_alone(
    site: Path, in_world: Any, tmp_path: Path, capsys: Any, snapshot: SnapshotAssertion
) -> None:
    in_world(World())
    open_identity(open_state(site).registry, served_names(load_site(site).site), datetime.now(UTC))
    assert export(site, tmp_path / "files") == ExitCode.OK
    assert capsys.readouterr().out.replace(str(tmp_path), "") == snapshot
    files = [path for path in (tmp_path / "files").rglob("*") if path.is_file()]
    closed = {path.name for path in files if path.stat().st_mode & 0o077 == 0}
    assert closed == {"tls.crt", "tls.key", "ca.crt", "secret.yaml"}


def test_before_the_first_apply_there_is_no_certificate(site: Path, in_world: Any, tmp_path: Path, capsys: Any) -> None:
    in_world(World())
    assert export(site, tmp_path / "files") == ExitCode.OK
    assert "run pai-install apply" in capsys.readouterr().err
    assert not (tmp_path / "files" / "prometheus" / "tls").exists()


def test_without_monitoring_nothing_is_written(site: Path, in_world: Any, tmp_path: Path, capsys: Any) -> None:
    in_world(World())
    (site / "services-configuration.yaml").write_text("monitoring: false\n")
    assert export(site, tmp_path / "files") == ExitCode.USAGE
    assert "monitoring-off" in capsys.readouterr().err
    assert not (tmp_path / "files").exists()


def test_a_file_in_place_of_the_folder_is_named(site: Path, in_world: Any, tmp_path: Path, capsys: Any) -> None:
    in_world(World())
    (tmp_path / "files").write_text("")
    assert export(site, tmp_path / "files") == ExitCode.USAGE
    error = capsys.readouterr().err
    assert "export-not-written" in error
    assert str(tmp_path / "files") in error
