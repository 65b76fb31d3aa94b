"""Root's kubectl on a control plane."""

from __future__ import annotations

import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.ansible_path import module_util


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where root's kubeconfig is."""
    path = tmp_path / "root" / ".kube" / "config"
    path.parent.parent.mkdir()
    monkeypatch.setattr(module_util("pai_root_kubectl"), "CONFIG", str(path))
    return path


def give(library: Any, *, check: bool = False) -> list[str]:
    member = library("pai_kubeadm").Member(SimpleNamespace(check_mode=check, params={}))
    member.configure_root_kubectl()
    actions: list[str] = member.actions
    return actions


def test_root_has_a_way_to_the_cluster_and_no_copy_of_it(library: Any, config: Path) -> None:
    assert give(library) == [f"repaired: {config} is missing"]
    assert str(config.readlink()) == "/etc/kubernetes/admin.conf"
    assert stat.S_IMODE(config.parent.stat().st_mode) == 0o700
    assert give(library) == []


@pytest.mark.parametrize("own", ["file", "link"])
def test_an_admins_own_stays(library: Any, config: Path, own: str) -> None:
    config.parent.mkdir()
    if own == "file":
        config.write_text("mine")
    else:
        config.symlink_to("/nowhere")
    assert give(library) == []
    assert config.is_symlink() is (own == "link")


def test_check_mode_only_says_so(library: Any, config: Path) -> None:
    assert give(library, check=True) == [f"repaired: {config} is missing"]
    assert not config.parent.exists()


def test_a_way_that_is_gone_is_drift(config: Path, managed: Any) -> None:
    expected = module_util("pai_root_kubectl").root_kubectl_expectations("init")
    assert managed.drift(expected) == [f"{config} is missing"]
    assert module_util("pai_root_kubectl").root_kubectl_expectations("join") == []
