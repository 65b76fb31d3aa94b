"""Rules between the registries of both files that need more than one file of a golden case."""

from __future__ import annotations

from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.site.load import read_site
from tests.unit.site.sites import CONFIG, LAYOUT, write_site

CACHE = CONFIG + "enable_docker_cache: true\ndocker_cache_storage_backend: filesystem\n"
TAKEN = "docker-cache:\n  service_nodeport: 30600\n"


def twice(folder: Path, config: str, services: str) -> list[str]:
    """FILE:LINE KEY: MESSAGE of every port that two have."""
    found = read_site(write_site(folder, config=config, services=services)).problems
    return [
        f"{Path(one.file).name}:{one.line} {one.path}: {one.message}" for one in found if one.code == "site.port-twice"
    ]


@pytest.mark.parametrize(
    ("services", "told"),
    [
        (
            f"{TAKEN}hivedscheduler:\n  webservice-port: 30600\n",
            "2 docker-cache.service_nodeport: 30600 is the port of hivedscheduler.webservice-port already",
        ),
        (
            "hivedscheduler:\n  webservice-port: 30500\n",
            "2 hivedscheduler.webservice-port: 30500 is the port of the cache already",
        ),
    ],
)
def test_a_port_of_two_is_told_at_its_line(tmp_path: Path, services: str, told: str) -> None:
    assert twice(tmp_path, CACHE, services) == [f"services-configuration.yaml:{told}"]


def test_without_a_cache_its_port_is_no_ones(tmp_path: Path) -> None:
    assert twice(tmp_path, CONFIG, f"{TAKEN}hivedscheduler:\n  webservice-port: 30600\n") == []


AZURE = (
    "enable_docker_cache: true\ndocker_cache_azure_account_name: acc\n"
    "docker_cache_azure_account_key: {env: PAI_TEST_AZURE_KEY}\n"
)


def test_a_limit_of_what_is_in_azure_is_an_error_at_its_line(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    (tmp_path / "layout.yaml").write_text(LAYOUT)
    (tmp_path / "config.yaml").write_text(CONFIG + AZURE)
    services = tmp_path / "services-configuration.yaml"
    services.write_text("registry:\n  keep-days: 7\n  size-limit: 100Gi\n")
    (found,) = [problem for problem in read_site(tmp_path).problems if problem.is_error]
    assert (found.file, found.line, found.code) == (str(services), 3, "site.azure-size")
    assert found.message == snapshot
