"""Storages on the site's own server."""

from __future__ import annotations

from pathlib import Path

import pytest

from pai_install.site.load import load_site, read_site
from tests.unit.site.sites import LAYOUT, write_site

SERVER = """  - hostname: files
    hostip: 10.0.0.3
    machine-type: master
    pai-storage: "true"
"""


def told(folder: Path, path: str, server: str = "files", manager: str = "") -> list[str]:
    """Every problem of a site with one storage, with its line and its remedy."""
    services = f"storages:\n  - name: data\n    type: nfs\n    server: {server}\n    path: {path}\n{manager}"
    (folder / "key").touch()
    found = read_site(write_site(folder, layout=LAYOUT + SERVER, services=services))
    return [f"{item.line} {item.code} {item.message}; {item.remedy}" for item in found.problems]


@pytest.mark.parametrize("server", ["files", "10.0.0.3"])
@pytest.mark.parametrize("path", ["/share/data", "/share/users", "/share/data/team/x"])
def test_what_is_served_may_be_a_storage(tmp_path: Path, server: str, path: str) -> None:
    assert told(tmp_path, path, server) == []


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("/share", "write a folder in one of them"),
        ("/share/database", "write a folder in one of them"),
        ("/export/data", "write a folder in one of them"),
        ("/data", "write /share/data"),
        ("/users/of/team", "write /share/users/of/team"),
    ],
)
def test_what_is_not_served_is_told_at_its_line(tmp_path: Path, path: str, remedy: str) -> None:
    message = f"files does not serve {path}, but /share/data and /share/users"
    assert told(tmp_path, path) == [f"5 site.not-served {message}; {remedy}"]


def test_the_folder_is_that_of_storage_manager(tmp_path: Path) -> None:
    manager = "storage-manager: {localpath: /srv/all}\n"
    assert told(tmp_path, "/srv/all/users", manager=manager) == []
    assert len(told(tmp_path, "/share/users", manager=manager)) == 1


def test_the_server_of_others_is_not_ours_to_judge(tmp_path: Path) -> None:
    assert told(tmp_path, "/anything", "w1") == []
    assert told(tmp_path, "/anything", "nas.example.com") == []


@pytest.mark.parametrize("folder", ["/", "/etc/share", "share", "/var"])
def test_a_folder_of_the_system_is_not_served(tmp_path: Path, folder: str) -> None:
    assert told(tmp_path, "/share/data", "nas", f"storage-manager: {{localpath: {folder}}}\n")


def test_a_quota_is_an_amount(tmp_path: Path) -> None:
    (problem,) = told(tmp_path, "/share/data", manager="storage-manager:\n  quotas:\n    user: 500GB\n")
    assert problem.startswith("8 ")
    assert "500G" in problem
    assert told(tmp_path, "/share/data", manager="storage-manager: {quotas: {data: 10Ti, user: 500Gi}}\n") == []


def test_a_machine_may_serve_alone(tmp_path: Path) -> None:
    (tmp_path / "key").touch()
    loaded = load_site(write_site(tmp_path, layout=LAYOUT + SERVER))
    assert loaded.problems == ()
    site = loaded.site
    assert [machine.hostname for machine in site.nodes] == ["m1", "w1"]
    assert [machine.hostname for machine in site.storage_servers] == ["files"]
