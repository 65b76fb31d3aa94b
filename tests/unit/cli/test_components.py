"""The components verb, with a cache of its own and no network."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.cli.main import run
from pai_install.components.catalogue import load_catalogue
from pai_install.components.model import ComponentSet, FileArtifact, ImageArtifact
from pai_install.errors import ExitCode

RESULT = ComponentSet(
    files=(FileArtifact("runc", "1.4.3", "binary", Path("/cache/runc"), "ab" * 32, 12_000_000),),
    images=(ImageArtifact("pause", "3.10.2", "sha256:" + "cd" * 32, Path("/cache/pause")),),
    kubernetes_version="1.36.3",
)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Replaces the work; the list holds what was selected and the source, then the packages installed."""
    calls: list[Any] = []

    def fetch(selection: object, source: object, **_: object) -> ComponentSet:
        calls.append((selection, source))
        return RESULT

    monkeypatch.setattr("pai_install.app.components.fetch", fetch)
    monkeypatch.setattr("pai_install.app.components.requirements", lambda *_: ())
    return calls


def output(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def test_list_shows_every_component_with_its_licence(
    capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    assert run(["components", "list"]) == ExitCode.OK
    text = capsys.readouterr().out
    assert text == snapshot
    assert "1.36.3    from modules, upstream" in text


def test_list_says_which_images_go_by_their_tag(
    capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    assert run(["components", "list"]) == ExitCode.OK
    text = capsys.readouterr().out
    assert text == snapshot
    assert "1.4.3     from modules, upstream\n" in text, "no images"


def test_list_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["components", "list", "--format", "json"]) == ExitCode.OK
    document = output(capsys)
    assert document["schema_version"] == 1
    runc = next(item for item in document["components"] if item["component"] == "runc")
    assert runc["licence"] == "Apache-2.0"
    assert runc["versions"] == {"1.4.3": ["modules", "upstream"]}
    assert (runc["files"], runc["images"]) == (["runc"], [])
    etcd = next(item for item in document["components"] if item["component"] == "etcd")
    assert etcd["digests"]["3.6.8"]["etcd"].startswith("sha256:")
    hived = next(item for item in document["components"] if item["component"] == "hivedscheduler")
    assert list(hived["lacks"]) == ["arm64"]


def test_status_of_an_empty_cache_is_not_ready(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["components", "status", "--source", "modules"]) == ExitCode.PREFLIGHT_FAILED
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len([it for it in load_catalogue().components.values() if it.build is not None])
    assert all(line.endswith("missing") for line in lines)


def test_status_as_json_says_where_and_what(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run(["components", "status", "--source", "upstream", "--kubernetes-version", "1.35", "--format", "json"])
    document = output(capsys)
    assert document["ok"] is False
    assert document["cache"] == str(tmp_path / "xdg/pai-install")
    assert (document["source"], document["kubernetes_version"]) == ("upstream", "1.35.8")
    assert {"component": "etcd", "version": "3.6.6", "cached": False} in document["components"]
    assert isinstance(document["missing_packages"], list)


def test_fetch_reports_files_and_images(fetched: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["components", "fetch", "--source", "modules"]) == ExitCode.OK
    file, image = capsys.readouterr().out.splitlines()
    assert file.split() == ["file", "runc", "1.4.3", "11", "MB", f"sha256:{'ab' * 32}"]
    assert image.split() == ["image", "pause", "3.10.2", f"sha256:{'cd' * 32}"]


def test_fetch_as_json(fetched: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["components", "fetch", "--source", "modules", "--format", "json"]) == ExitCode.OK
    document = output(capsys)
    assert document["kubernetes_version"] == "1.36.3"
    assert document["files"][0]["path"] == "/cache/runc"
    assert document["images"][0]["manifest_digest"] == "sha256:" + "cd" * 32


def test_fetch_takes_version_and_mirror_from_the_command_line(fetched: list[Any]) -> None:
    words = ["--source", "mirror", "--mirror-url", "https://m.example", "--kubernetes-version", "1.35.8"]
    assert run(["components", "fetch", *words]) == ExitCode.OK
    ((selection, source),) = fetched
    assert selection.kubernetes_version == "1.35.8"
    assert source.name == "mirror"


def test_fetch_installs_what_is_missing_when_allowed(
    fetched: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed: list[str] = []
    monkeypatch.setattr("pai_install.app.components.requirements", lambda *_: ("libseccomp-dev",))
    monkeypatch.setattr("pai_install.app.components.install", installed.extend)
    assert run(["components", "fetch", "--source", "modules", "--yes"]) == ExitCode.OK
    assert installed == ["libseccomp-dev"]
    assert "libseccomp-dev" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--source", "mirror"], ExitCode.SITE_INVALID),
        (["--source", "modules", "--kubernetes-version", "1.20"], ExitCode.SITE_INVALID),
        (["--source", "bundle"], ExitCode.SITE_INVALID),
        (["--source", "bundle", "--bundle", "/nowhere"], ExitCode.SITE_INVALID),
        (["--source", "disk"], ExitCode.USAGE),
    ],
)
def test_what_cannot_be_is_refused(words: list[str], code: ExitCode, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["components", "fetch", *words]) == code
    assert capsys.readouterr().err


def test_a_folder_without_a_site_is_an_error(tmp_path: Path) -> None:
    assert run(["components", "status", "--site", str(tmp_path)]) == ExitCode.SITE_INVALID


def test_a_bundle_is_written_and_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def write(selection: object, source: object, target: Path, **_: object) -> None:
        target.write_bytes(b"bundle")

    monkeypatch.setattr("pai_install.app.components.write_bundle", write)
    words = ["components", "bundle", str(tmp_path / "x.tar"), "--source", "modules", "--format", "json"]
    assert run(words) == ExitCode.OK
    document = output(capsys)
    assert (document["path"], document["size"]) == (str(tmp_path / "x.tar"), 6)
    assert run(words[:-2]) == ExitCode.OK
    assert document["sha256"] in capsys.readouterr().out


SKU = "machine-sku: {one: {mem: 8Gi, cpu: {vcore: 4}%s}}\n"
MACHINE = 'machine-list: [{hostname: m, hostip: 10.0.0.1, machine-type: one, pai-master: "true", pai-worker: "true"}]\n'


@pytest.mark.parametrize(
    ("devices", "nvidia"),
    [
        ("", set()),
        (
            ", computing-device: {type: nvidia.com/gpu, model: A100, count: 8}",
            {"nvidia-container-toolkit", "nvidia-device-plugin"},
        ),
    ],
)
def test_what_a_site_needs_depends_on_its_machines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], devices: str, nvidia: set[str]
) -> None:
    (tmp_path / "layout.yaml").write_text(SKU % devices + MACHINE)
    (tmp_path / "config.yaml").write_text("user: pai\npassword: x\nmetrics_server: false\n")
    assert run(["components", "list", "--needed", "--site", str(tmp_path), "--format", "json"]) == ExitCode.OK
    names = {item["component"] for item in output(capsys)["components"]}
    assert {name for name in names if "nvidia" in name} == nvidia
    assert "kubernetes" in names
    assert "metrics-server" not in names
