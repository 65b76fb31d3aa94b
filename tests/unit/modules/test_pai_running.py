"""What runs on a machine before anything is changed there."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.ansible_path import module_util


@pytest.fixture
def daemon_json(running: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that is taken for /etc/docker/daemon.json; not there yet."""
    path = tmp_path / "daemon.json"
    monkeypatch.setattr(running, "DAEMON_JSON", str(path))
    return path


def process(folder: Path, number: int, *words: str) -> None:
    """A process as /proc shows it."""
    (folder / str(number)).mkdir()
    (folder / str(number) / "cmdline").write_bytes("\0".join([*words, ""]).encode())


def test_containers_are_counted_by_their_shims(running: Any, tmp_path: Path) -> None:
    shim = "/usr/bin/containerd-shim-runc-v2"
    process(tmp_path, 1, shim, "-namespace", "moby", "-id", "a")
    process(tmp_path, 2, shim, "-namespace", "k8s.io", "-id", "b")
    process(tmp_path, 3, "grep", "-namespace", "moby")
    process(tmp_path, 4, shim, "-id", "c", "-namespace", "moby")
    process(tmp_path, 5)
    assert running.containers(str(tmp_path / "[0-9]*" / "cmdline")) == 2


def test_docker_without_a_file_has_its_defaults(running: Any, daemon_json: Path) -> None:
    del daemon_json
    found = running.docker()
    assert (found["data_root"], found["log_driver"]) == ("/var/lib/docker", "json-file")


@pytest.mark.parametrize("text", ["{", "[]", "", "\xff"])
def test_a_broken_file_is_no_traceback(running: Any, daemon_json: Path, text: str) -> None:
    daemon_json.write_bytes(text.encode("latin-1"))
    assert running.docker()["data_root"] == "/var/lib/docker"


def test_what_daemon_json_says(running: Any, daemon_json: Path) -> None:
    daemon_json.write_text(json.dumps({"data-root": "/fast/docker", "log-driver": "syslog"}))
    found = running.docker()
    assert (found["data_root"], found["log_driver"], found["own_images"]) == ("/fast/docker", "syslog", False)
    daemon_json.write_text(json.dumps({"features": {"containerd-snapshotter": False}}))
    assert running.docker()["own_images"] is True


def test_services_are_the_active_ones(running: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    states = {"docker.service": {"ActiveState": "active"}, "ntp.service": {"ActiveState": "failed"}}
    monkeypatch.setattr(running, "unit_states", lambda _names: states)
    assert running.services(list(running.WATCHED)) == ["docker.service"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Docker version 20.10.24+dfsg1, build 297e128", "20.10.24"),
        ("Docker version 19.03.15, build 99e3ed8919", "19.03.15"),
        ("Docker version 24.0.9-1, build f417435e5f6216828dec57958c490c4f8bae4f980", "24.0.9"),
        ("what", ""),
    ],
)
def test_version_of_docker_is_what_dockerd_says(
    running: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, expected: str
) -> None:
    """By it the role knows what Docker can: dockerd checks files since 23."""
    program = tmp_path / "dockerd"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert running.docker_version() == expected


def test_machine_without_docker_has_no_version(running: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_util("pai_machine"), "SYSTEM_PATH", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert running.docker_version() == ""


# as Docker's instructions wrote it over the years, and as a mirror of one's own may be called
HISTORIC = {
    "docker.list": "deb [arch=amd64 signed-by=/etc/apt/keyrings/docker.gpg] "
    "https://download.docker.com/linux/ubuntu jammy stable",
    "asc.list": "deb [signed-by=/etc/apt/keyrings/docker.asc] https://download.docker.com/linux/debian bookworm stable",
    "shared.list": "deb [arch=amd64 signed-by=/usr/share/keyrings/docker-archive-keyring.gpg] "
    "https://download.docker.com/linux/debian bookworm stable",
    "archive_uri-https_download_docker_com.list": "deb [arch=amd64] "
    "https://download.docker.com/linux/ubuntu focal stable",
    "docker.sources": "Types: deb\nURIs: https://download.docker.com/linux/debian\nSuites: trixie\nComponents: stable\n"
    "Signed-By: /etc/apt/keyrings/docker.asc",
}


@pytest.mark.parametrize("name", HISTORIC)
def test_dockers_repository_is_known_in_every_form_it_had(running: Any, tmp_path: Path, name: str) -> None:
    """Ours beside it would have another key: apt would read no source at all any more."""
    folder = tmp_path / "sources.list.d"
    folder.mkdir()
    (folder / name).write_text(HISTORIC[name] + "\n")
    assert running.docker_repository(str(tmp_path)) == str(folder / name)


@pytest.mark.parametrize(
    "text",
    [
        "# deb https://download.docker.com/linux/ubuntu jammy stable\n",
        "deb https://docker-mirror.corp.example/linux/ubuntu jammy stable\n",
        "# Managed by pai-install: changes are overwritten.\nURIs: https://download.docker.com/linux/debian\n",
    ],
)
def test_what_is_off_elsewhere_or_ours_is_none(running: Any, tmp_path: Path, text: str) -> None:
    folder = tmp_path / "sources.list.d"
    folder.mkdir()
    (folder / "docker.sources").write_text(text)
    (folder / "docker.list.save").write_text(HISTORIC["docker.list"])
    assert running.docker_repository(str(tmp_path)) == ""


@pytest.mark.skipif(shutil.which("apt-get") is None, reason="no apt here")
def test_apt_really_refuses_two_keys_for_one_repository(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    """Why the repository is left alone where it is: the same source with another key ends every command of apt."""
    for folder in ("etc/sources.list.d", "state/lists/partial", "cache/archives/partial"):
        (tmp_path / folder).mkdir(parents=True)
    first, second = (tmp_path / "etc/sources.list.d" / name for name in ("docker.list", "ours.sources"))
    first.write_text(HISTORIC["asc.list"] + "\n")
    places = {"Dir::Etc": tmp_path / "etc", "Dir::State": tmp_path / "state", "Dir::Cache": tmp_path / "cache"}
    words = [f"-o{key}={value}/" for key, value in places.items()]

    def targets() -> subprocess.CompletedProcess[str]:
        return subprocess.run(["apt-get", *words, "indextargets"], capture_output=True, text=True, check=False)

    assert targets().returncode == 0
    second.write_text(HISTORIC["docker.sources"].replace("trixie", "bookworm").replace("docker.asc", "docker-2.asc"))
    refused = targets()
    assert refused.returncode != 0
    assert refused.stderr == snapshot
