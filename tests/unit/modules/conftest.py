"""Our Ansible modules and filters, loaded as Ansible would find them."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

from tests.ansible_path import PLAYBOOKS, module_util


def load(path: Path, name: str) -> ModuleType:
    """One Python file as a module of that name."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def kubectl_util() -> Any:
    """playbooks/module_utils/pai_kubectl.py."""
    return module_util("pai_kubectl")


@pytest.fixture(scope="session")
def cluster_state() -> Any:
    """playbooks/module_utils/pai_cluster_state.py."""
    return module_util("pai_cluster_state")


@pytest.fixture(scope="session")
def managed() -> Any:
    """playbooks/module_utils/pai_managed.py."""
    return module_util("pai_managed")


@pytest.fixture(scope="session")
def digests() -> Any:
    """playbooks/module_utils/pai_digests.py."""
    return module_util("pai_digests")


@pytest.fixture(scope="session")
def merging() -> Any:
    """playbooks/module_utils/pai_merging.py."""
    return module_util("pai_merging")


@pytest.fixture(scope="session")
def etcd() -> Any:
    """playbooks/module_utils/pai_etcd_members.py."""
    return module_util("pai_etcd_members")


@pytest.fixture(scope="session")
def certificate_facts() -> Any:
    """playbooks/module_utils/pai_certificates.py."""
    return module_util("pai_certificates")


@pytest.fixture(scope="session")
def cluster_settings() -> Any:
    """playbooks/module_utils/pai_cluster_settings.py."""
    return module_util("pai_cluster_settings")


@pytest.fixture(scope="session")
def objects() -> Any:
    """playbooks/module_utils/pai_objects.py."""
    return module_util("pai_objects")


@pytest.fixture(scope="session")
def running() -> Any:
    """playbooks/module_utils/pai_running.py."""
    return module_util("pai_running")


@pytest.fixture(scope="session")
def kubeadm_files() -> Any:
    """playbooks/module_utils/pai_kubeadm_files.py."""
    return module_util("pai_kubeadm_files")


@pytest.fixture(scope="session")
def static_pods() -> Any:
    """playbooks/module_utils/pai_static_pods.py."""
    return module_util("pai_static_pods")


@pytest.fixture(scope="session")
def library() -> Callable[[str], Any]:
    """Loads playbooks/library/NAME.py."""
    return lambda name: load(PLAYBOOKS / "library" / f"{name}.py", f"pai_library_{name}")


@pytest.fixture(scope="session")
def filters() -> Any:
    """All of playbooks/filter_plugins, as one."""
    paths = sorted((PLAYBOOKS / "filter_plugins").glob("*.py"))
    return SimpleNamespace(**{k: v for path in paths for k, v in vars(load(path, f"filters_{path.stem}")).items()})


@pytest.fixture
def facts() -> dict[str, Any]:
    """A plain machine: systemd, cgroup v2, every capability."""
    return {
        "cgroup_version": 2,
        "cgroup_driver": "systemd",
        "virtualization": {"kind": "none", "container": False},
        "sys_resource": True,
        "bridge_netfilter": True,
        "mtu": 1500,
        "mtus": {},
        "resolved": False,
    }


class ModuleFailedError(Exception):
    """The module ended with fail_json; `result` is what it said."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__(result.get("msg"))
        self.result = result


Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run_module(library: Callable[[str], Any], capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a module as Ansible does, in this process: run_module("pai_files", files=[...])."""

    def run(name: str, /, *, check: bool = False, **arguments: Any) -> dict[str, Any]:
        module = library(name)
        words = {**arguments, "_ansible_check_mode": check, "_ansible_diff": True}
        before = os.umask(0o022)
        try:
            with patch_module_args(words), pytest.raises(SystemExit) as stop:
                module.main()
        finally:
            os.umask(before)  # a module may set its own
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        if stop.value.code != 0:
            raise ModuleFailedError(result)
        return result

    return run


STAND_IN_SYSTEMCTL = """#!/usr/bin/env python3
import json, os, sys
home = os.environ["STAND_IN_SYSTEMCTL"]
units = json.load(open(home + "/units.json"))
words = [word for word in sys.argv[1:] if not word.startswith("--")]
if words[0] == "show":
    wanted = [word for word in sys.argv if word.startswith("--property=")][0].split("=", 1)[1].split(",")
    blocks = [{"Id": name, **units.get(name, {"LoadState": "not-found"})} for name in words[1:]]
    print("\\n\\n".join("\\n".join(f"{k}={b[k]}" for k in wanted if k in b) for b in blocks))
else:
    open(home + "/calls", "a").write(" ".join(words) + "\\n")
    sys.exit(1 if " ".join(words) == os.environ.get("STAND_IN_FAILS") else 0)
"""
RUNNING = {
    "LoadState": "loaded",
    "ActiveState": "active",
    "UnitFileState": "enabled",
    "NeedDaemonReload": "no",
    "FragmentPath": "/usr/lib/systemd/system/x.service",
}


class Systemd:
    """The stand-in: its units, and what was asked of it."""

    def __init__(self, home: Path) -> None:
        self.home = home

    def has(self, **changes: str) -> None:
        """One unit x.service that has run for a minute, with these properties changed."""
        started = int((time.clock_gettime(time.CLOCK_MONOTONIC) - 60) * 1e6)
        unit = {**RUNNING, "InactiveExitTimestampMonotonic": str(started), **changes}
        (self.home / "units.json").write_text(json.dumps({"x.service": unit}))

    @property
    def calls(self) -> list[str]:
        """Every call but `show`."""
        path = self.home / "calls"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Systemd:
    """Comes first on PATH; systemctl and journalctl."""
    home = tmp_path / "systemd"
    home.mkdir()
    for name, text in (("systemctl", STAND_IN_SYSTEMCTL), ("journalctl", "#!/bin/sh\necho a log line\n")):
        (home / name).write_text(text)
        (home / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")
    monkeypatch.setenv("STAND_IN_SYSTEMCTL", str(home))
    made = Systemd(home)
    made.has()
    return made


@pytest.fixture
def young(tmp_path: Path) -> str:
    """A file that was written after the unit's start."""
    path = tmp_path / "young.conf"
    path.write_text("new")
    return str(path)
