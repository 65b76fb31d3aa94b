"""Resolvers, package sources, proxies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from pai_install.checks.verdict import Verdict
from pai_install.site import Site
from tests.unit.preflight.machines import CONFIG, findings_of, installed, read_site

STUB, REAL = "/etc/resolv.conf", "/run/systemd/resolve/resolv.conf"


@pytest.mark.parametrize(
    ("names", "verdict"),
    [
        ({"files": {STUB: ["10.0.0.53"]}}, "PASS"),
        ({"files": {STUB: ["127.0.0.53"], REAL: ["10.0.0.53"]}, "resolved": True}, "PASS"),
        ({"files": {STUB: ["127.0.0.53"], REAL: ["127.0.0.1"]}, "resolved": True}, "FAIL"),
        ({"files": {STUB: ["127.0.0.1"]}}, "FAIL"),
        ({"files": {STUB: ["::1"]}}, "FAIL"),
        ({"files": {STUB: ["127.0.0.53"], REAL: ["10.0.0.53"]}, "resolved": False}, "FAIL"),
        ({"files": {STUB: []}}, "WARN"),
        ({"files": {}}, "WARN"),
        ({"files": {STUB: ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]}}, "WARN"),
        ({"files": {STUB: ["fe80::1%eth0"]}}, "PASS"),
        ({"files": {STUB: ["nonsense"]}}, "PASS"),
    ],
)
def test_resolvers(site: Site, names: dict[str, Any], verdict: str) -> None:
    found = findings_of(site, "resolvers", {"worker1": {"names": {"resolved": False, **names}}})["worker1"]
    assert found.verdict == verdict


def test_the_sites_own_resolver_file_decides(tmp_path: Path) -> None:
    site = read_site(tmp_path / "s", config=CONFIG + "kubelet_config: {resolvConf: /etc/resolv.pods}\n")
    names = {"files": {STUB: ["127.0.0.1"], "/etc/resolv.pods": ["10.0.0.53"]}}
    found = findings_of(site, "resolvers", {"worker1": {"names": names}})["worker1"]
    assert found.verdict is Verdict.PASS
    assert found.value.startswith("/etc/resolv.pods")


@pytest.mark.parametrize(
    ("sources", "verdict"),
    [
        ({"deb.debian.org:80": ""}, "PASS"),
        ({"deb.debian.org:80": "timed out"}, "FAIL"),
        ({"deb.debian.org:80": "", "download.docker.com:443": "timed out"}, "WARN"),
        ({}, "WARN"),
    ],
)
def test_package_sources(site: Site, sources: dict[str, str], verdict: str) -> None:
    found = findings_of(site, "package-sources", {"worker1": {"package_sources": sources}})["worker1"]
    assert found.verdict == verdict
    assert ("timed out" in found.value) == ("timed out" in sources.values())


def test_an_installed_machine_can_wait_for_its_packages(site: Site) -> None:
    gone = {"worker1": {"package_sources": {"deb.debian.org:80": "timed out"}}}
    assert findings_of(site, "package-sources", gone, installed)["worker1"].verdict is Verdict.WARN


REFUSED = "The repository 'https://old.example/cuda Release' does not have a Release file."


def test_a_source_that_apt_refuses_ends_every_update(site: Site) -> None:
    ended = {"worker1": {"package_refusals": [REFUSED], "package_sources": {"deb.debian.org:80": "timed out"}}}
    found = findings_of(site, "package-sources", ended)["worker1"]
    assert (found.verdict, found.value) == (Verdict.FAIL, REFUSED)
    assert findings_of(site, "package-sources", ended, installed)["worker1"].verdict is Verdict.WARN


def test_sources_that_apt_was_not_asked_about_do_not_pass(site: Site) -> None:
    silent = {"worker1": {"package_refusals": None, "problems": {"package_refusals": "apt-get cannot be run"}}}
    found = findings_of(site, "package-sources", silent)["worker1"]
    assert found.verdict is Verdict.UNKNOWN
    silent["worker1"]["package_sources"] = {"deb.debian.org:80": "timed out"}
    assert findings_of(site, "package-sources", silent)["worker1"].verdict is Verdict.FAIL


PROXY = CONFIG + "http_proxy: http://me:secret@proxy:3128\nhttps_proxy: http://proxy:3128\n"


@pytest.mark.parametrize(("problem", "verdict"), [("", "PASS"), ("timed out", "FAIL")])
def test_the_sites_proxy(tmp_path: Path, problem: str, verdict: str) -> None:
    site = read_site(tmp_path / "s", config=PROXY)
    found = findings_of(site, "proxy", {"worker1": {"servers": {"proxy:3128": problem}}})["worker1"]
    assert found.verdict == verdict
    assert "secret" not in str(found)


def test_a_proxy_that_the_site_forgot(site: Site, snapshot: SnapshotAssertion) -> None:
    own = {"/etc/environment https_proxy": "http://proxy:3128", "/etc/apt/apt.conf.d/80proxy http": "http://apt:3142"}
    found = findings_of(site, "proxy", {"worker1": {"proxies": own}})["worker1"]
    assert found.verdict is Verdict.WARN
    assert found.value == snapshot


def test_a_proxy_for_packages_alone_is_fine(site: Site) -> None:
    own = {"/etc/apt/apt.conf.d/80proxy http": "http://apt:3142"}
    assert findings_of(site, "proxy", {"worker1": {"proxies": own}})["worker1"].verdict is Verdict.PASS
