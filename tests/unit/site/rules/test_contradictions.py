"""Two files that say different things: which one rules is said."""

from __future__ import annotations

from pathlib import Path

from syrupy.assertion import SnapshotAssertion

from pai_install.site.load import load_site, read_site
from pai_install.site.summary import meanings
from tests.unit.site.sites import CONFIG, write_site

SERVICES = """\
docker-cache: {enabled: true, remote_url: https://a.example.com}
cluster: {common: {docker-data-root: /data}}
"""


def test_what_both_files_say_is_decided_by_config(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    config = CONFIG + "enable_docker_cache: false\ndocker_cache_remote_url: https://b.example.com\n"
    write_site(tmp_path, config=config, services=SERVICES)
    assert [(p.path, p.code, p.message) for p in read_site(tmp_path).problems] == snapshot


def test_what_only_the_services_say_is_told_beside_the_default(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    site = load_site(write_site(tmp_path, services=SERVICES)).site
    [cache] = [meaning for meaning in meanings(site) if meaning.topic == "Docker cache"]
    assert cache.value == snapshot
    assert cache.default
