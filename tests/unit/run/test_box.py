"""Certificates on the dev box."""

from __future__ import annotations

import base64
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pai_install.registry.certificates import make_authority
from pai_install.registry.identity import make_identity, save
from pai_install.registry.model import ServedNames
from pai_install.run.box import box_certificates
from pai_install.run.state import StateFolder

NOW = datetime(2026, 11, 1, tzinfo=UTC)


def test_a_new_dev_box_has_none(tmp_path: Path) -> None:
    assert box_certificates(StateFolder(tmp_path)) == ()


def test_those_of_kubeconfig_and_registries(tmp_path: Path) -> None:
    certificate, _key = make_authority("test", NOW)
    data = base64.b64encode(certificate.encode()).decode()
    (tmp_path / "kubeconfig").write_text(f"users:\n- user:\n    client-certificate-data: {data}\n")
    names = ServedNames(cache=("cache.internal",), store=("store.internal",), webhook=(), port=0)
    save(tmp_path / "registry.json", make_identity(names, NOW))
    found = {entry.path: entry for entry in box_certificates(StateFolder(tmp_path))}
    assert [*found] == [
        ".pai/kubeconfig",
        ".pai/registry.json authority 1",
        ".pai/registry.json store",
        ".pai/registry.json cache",
    ]
    assert found[".pai/kubeconfig"].expires == int((NOW + timedelta(days=3650)).timestamp())
    assert found[".pai/registry.json store"].expires == int((NOW + timedelta(days=397)).timestamp())


def test_what_cannot_be_read_says_so(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("users: []\n")
    (tmp_path / "registry.json").write_text("{}")
    first, second = box_certificates(StateFolder(tmp_path))
    assert (first.expires, first.problem) == (None, "it holds no certificate")
    assert second.expires is None
    assert "cannot be used" in second.problem
