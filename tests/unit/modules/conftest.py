"""Our Ansible modules and filters, loaded as Ansible would find them."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args

PLAYBOOKS = Path(__file__).parents[3] / "playbooks"
SHARED = "ansible.module_utils.pai_managed"
ETCD = "ansible.module_utils.pai_etcd_members"
RUNNING = "ansible.module_utils.pai_running"
CERTIFICATES = "ansible.module_utils.pai_certificates"
CLUSTER_SETTINGS = "ansible.module_utils.pai_cluster_settings"
CLUSTER_STATE = "ansible.module_utils.pai_cluster_state"
KUBECTL = "ansible.module_utils.pai_kubectl"
KUBEADM_FILES = "ansible.module_utils.pai_kubeadm_files"
STATIC_PODS = "ansible.module_utils.pai_static_pods"


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
    return sys.modules.get(KUBECTL) or load(PLAYBOOKS / "module_utils" / "pai_kubectl.py", KUBECTL)


@pytest.fixture(scope="session")
def cluster_state() -> Any:
    """playbooks/module_utils/pai_cluster_state.py."""
    path = PLAYBOOKS / "module_utils" / "pai_cluster_state.py"
    return sys.modules.get(CLUSTER_STATE) or load(path, CLUSTER_STATE)


@pytest.fixture(scope="session")
def managed(kubectl_util: Any, cluster_state: Any) -> Any:
    """playbooks/module_utils/pai_managed.py."""
    del kubectl_util, cluster_state
    return sys.modules.get(SHARED) or load(PLAYBOOKS / "module_utils" / "pai_managed.py", SHARED)


@pytest.fixture(scope="session")
def etcd() -> Any:
    """playbooks/module_utils/pai_etcd_members.py."""
    return sys.modules.get(ETCD) or load(PLAYBOOKS / "module_utils" / "pai_etcd_members.py", ETCD)


@pytest.fixture(scope="session")
def certificate_facts() -> Any:
    """playbooks/module_utils/pai_certificates.py."""
    return sys.modules.get(CERTIFICATES) or load(PLAYBOOKS / "module_utils" / "pai_certificates.py", CERTIFICATES)


@pytest.fixture(scope="session")
def cluster_settings() -> Any:
    """playbooks/module_utils/pai_cluster_settings.py."""
    path = PLAYBOOKS / "module_utils" / "pai_cluster_settings.py"
    return sys.modules.get(CLUSTER_SETTINGS) or load(path, CLUSTER_SETTINGS)


@pytest.fixture(scope="session")
def running(managed: Any) -> Any:
    """playbooks/module_utils/pai_running.py."""
    del managed
    return sys.modules.get(RUNNING) or load(PLAYBOOKS / "module_utils" / "pai_running.py", RUNNING)


@pytest.fixture(scope="session")
def kubeadm_files(managed: Any) -> Any:
    """playbooks/module_utils/pai_kubeadm_files.py."""
    del managed
    path = PLAYBOOKS / "module_utils" / "pai_kubeadm_files.py"
    return sys.modules.get(KUBEADM_FILES) or load(path, KUBEADM_FILES)


@pytest.fixture(scope="session")
def static_pods(kubeadm_files: Any) -> Any:
    """playbooks/module_utils/pai_static_pods.py."""
    del kubeadm_files
    return sys.modules.get(STATIC_PODS) or load(PLAYBOOKS / "module_utils" / "pai_static_pods.py", STATIC_PODS)


@pytest.fixture(scope="session")
def library(
    managed: Any, etcd: Any, certificate_facts: Any, running: Any, static_pods: Any, cluster_settings: Any
) -> Callable[[str], Any]:
    """Loads playbooks/library/NAME.py."""
    del managed, etcd, certificate_facts, running, static_pods, cluster_settings
    return lambda name: load(PLAYBOOKS / "library" / f"{name}.py", f"pai_library_{name}")


@pytest.fixture(scope="session")
def filters() -> Any:
    """playbooks/filter_plugins/pai.py."""
    return load(PLAYBOOKS / "filter_plugins" / "pai.py", "pai_filters")


@pytest.fixture
def facts() -> dict[str, Any]:
    """A plain machine: systemd, cgroup v2, every capability."""
    return {
        "cgroup_version": 2,
        "virtualization": {"kind": "none", "container": False},
        "sys_resource": True,
        "bridge_netfilter": True,
        "mtu": 1500,
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

    def run(name: str, *, check: bool = False, **arguments: Any) -> dict[str, Any]:
        module = library(name)
        words = {**arguments, "_ansible_check_mode": check, "_ansible_diff": True}
        with patch_module_args(words), pytest.raises(SystemExit) as stop:
            module.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        if stop.value.code != 0:
            raise ModuleFailedError(result)
        return result

    return run
