"""sudo, Python, operating system."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pai_install.checks.verdict import Verdict
from pai_install.preflight.judge import judge
from pai_install.site import Site
from tests.unit.preflight.machines import LAYOUT, findings_of, fleet, read_site

SUDO_WORDS = {
    "Task failed: Incorrect sudo password": "refuses the password",
    "Task failed: Missing sudo password": "asks pai for a password",
    "sudo: unable to resolve host x\npai is not in the sudoers file.": "not allowed",
    "Sorry, user pai may not run sudo on worker1.": "not allowed",
    "/bin/sh: 1: sudo: not found": "not installed",
    "Timed out waiting for privilege escalation prompt: ": "does not answer",
    "something else": "cannot become root",
}


@pytest.mark.parametrize("words", SUDO_WORDS)
def test_sudo_refused_is_explained(site: Site, words: str) -> None:
    seen = fleet({"worker1": {"identity": {"root": False, "user": "pai"}}})
    seen["worker1"] = seen["worker1"].model_copy(update={"sudo_problem": words})
    found = [finding for finding in judge(site, seen, {}) if finding.id == "sudo"]
    bad = [finding for finding in found if finding.verdict is Verdict.FAIL]
    assert [finding.subject for finding in bad] == ["worker1"]
    assert SUDO_WORDS[words] in bad[0].message
    assert bad[0].remedy
    assert words.splitlines()[-1].strip() == bad[0].value


def test_without_become_the_user_must_be_root(tmp_path: Path) -> None:
    site = read_site(tmp_path / "s", LAYOUT.replace("hostname: worker1,", "hostname: worker1, become: false,"))
    found = findings_of(site, "sudo", {"worker1": {"identity": {"root": False, "user": "pai"}}})
    assert found["worker1"].verdict is Verdict.FAIL
    assert "become: false" in found["worker1"].message
    assert found["master"].verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("version", "verdict"),
    [("3.8.10", "FAIL"), ("3.9.2", "PASS"), ("3.13.5", "PASS"), ("2.7.18", "FAIL"), ("4.0", "PASS"), ("", "FAIL")],
)
def test_python(site: Site, version: str, verdict: str) -> None:
    assert findings_of(site, "python", {"master": {"identity": {"python": version}}})["master"].verdict == verdict


@pytest.mark.parametrize(
    ("system", "verdict"),
    [
        ({"id": "debian", "version_id": "13"}, "PASS"),
        ({"id": "ubuntu", "version_id": "22.04"}, "PASS"),
        ({"id": "ubuntu", "version_id": "24.04"}, "PASS"),
        ({"id": "ubuntu", "version_id": "20.04", "name": "Ubuntu 20.04.6 LTS"}, "FAIL"),
        ({"id": "debian", "version_id": "11"}, "FAIL"),
        ({"id": "centos", "version_id": "7", "name": ""}, "FAIL"),
        ({"systemd": False}, "FAIL"),
    ],
)
def test_operating_system(site: Site, system: dict[str, Any], verdict: str) -> None:
    found = findings_of(site, "operating-system", {"worker2": {"system": system}})["worker2"]
    assert found.verdict == verdict
    assert found.value
    assert bool(found.remedy) == (verdict == "FAIL")


@pytest.mark.parametrize(
    ("seen", "box", "verdict"),
    [
        ("x86_64", "x86_64", "PASS"),
        ("aarch64", "aarch64", "PASS"),
        ("aarch64", "", "PASS"),
        ("aarch64", "x86_64", "FAIL"),
        ("ppc64le", "ppc64le", "FAIL"),
        ("", "x86_64", "FAIL"),
    ],
)
def test_architecture(site: Site, seen: str, box: str, verdict: str) -> None:
    found = judge(site, fleet({"worker1": {"system": {"architecture": seen}}}), {}, architecture=box)
    told = {finding.subject: finding for finding in found if finding.id == "architecture"}
    assert told["worker1"].verdict == verdict
    assert told["worker1"].value == seen
