"""Certificates on the controller host."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pai_install.registry.certificates import make_authority
from pai_install.registry.identity import make_identity, save
from pai_install.registry.model import ServedNames
from pai_install.run.local_certificates import box_certificates
from pai_install.run.state import StateFolder

PLANES = ("10.0.0.1",)
NOW = datetime(2026, 11, 1, tzinfo=UTC)


def test_a_new_dev_box_has_none(tmp_path: Path) -> None:
    assert box_certificates(StateFolder(tmp_path), PLANES) == ()


def test_those_of_kubeconfig_and_registries(tmp_path: Path) -> None:
    certificate, _key = make_authority("test", NOW)
    data = base64.b64encode(certificate.encode()).decode()
    (tmp_path / "kubeconfig").write_text(f"users:\n- user:\n    client-certificate-data: {data}\n")
    names = ServedNames(cache=("cache.internal",), store=("store.internal",), webhook=(), port=0, alertmanager=("a",))
    save(tmp_path / "registry.json", make_identity(names, NOW))
    found = {entry.path: entry for entry in box_certificates(StateFolder(tmp_path), PLANES)}
    assert [*found] == [
        ".pai/kubeconfig",
        ".pai/registry.json authority 1",
        ".pai/registry.json store",
        ".pai/registry.json cache",
        ".pai/registry.json alertmanagers",
    ]
    assert found[".pai/kubeconfig"].expires == int((NOW + timedelta(days=3650)).timestamp())
    assert found[".pai/registry.json store"].expires == int((NOW + timedelta(days=397)).timestamp())


def test_what_cannot_be_read_says_so(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("users: []\n")
    (tmp_path / "registry.json").write_text("{}")
    first, second = box_certificates(StateFolder(tmp_path), PLANES)
    assert (first.expires, first.problem) == (None, "it holds no certificate")
    assert second.expires is None
    assert "registry.json" in second.problem


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ("10.0.0.1", ""),
        ("10.0.0.9", "it leads to 10.0.0.9, which is no control plane of this site"),
    ],
)
def test_a_kubeconfig_that_leads_to_a_machine_that_left(tmp_path: Path, server: str, problem: str) -> None:
    certificate, _key = make_authority("test", NOW)
    data = base64.b64encode(certificate.encode()).decode()
    clusters = f"clusters:\n- cluster:\n    server: https://{server}:6443\n"
    (tmp_path / "kubeconfig").write_text(f"{clusters}users:\n- user:\n    client-certificate-data: {data}\n")
    (found,) = box_certificates(StateFolder(tmp_path), PLANES)
    assert found.problem == problem
    assert found.expires is not None
