"""The numbers of `ports.py` stand nowhere else in the package, and what runs on machines has the same ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_install import ports

ROOT = Path(__file__).parents[2]
OWN = "installer/pai_install/ports.py"
# number -> the files that cannot import it, or that a person edits, and so have it as text
STANDS_IN = {
    ports.API_SERVER_PORT: {
        "installer/pai_install/cli/kubectl.py",  # in its help
        "installer/pai_install/report/causes.py",  # in a message that it recognizes
        "playbooks/filter_plugins/pai_kubeadm.py",
        "playbooks/module_utils/pai_kubectl.py",
        "roles/api_proxy/templates/api-proxy.cfg.j2",
        "roles/control_plane/tasks/kubeconfig.yml",
    },
    ports.API_PROXY_PORT: {
        "addons/flannel/objects/flannel.yaml.j2",
        "inventories/example/group_vars/all/derived.yml",
        "roles/api_proxy/defaults/main.yml",
        "roles/group_network/defaults/main.yml",
        "roles/job_recorder/defaults/main.yml",
    },
    ports.ETCD_CLIENT_PORT: {
        "playbooks/library/pai_kubeadm.py",  # in the names of kubeadm's checks
        "playbooks/module_utils/pai_etcd_members.py",
        "roles/control_plane/files/etcdctl.sh",
    },
    ports.ETCD_PEER_PORT: {"playbooks/library/pai_kubeadm.py", "playbooks/library/pai_restore.py"},
    ports.KUBELET_PORT: {"playbooks/library/pai_kubeadm.py", "addons/metrics_server/patches/metrics-server.yaml.j2"},
    ports.KUBELET_HEALTH_PORT: set(),
    ports.KUBE_PROXY_METRICS_PORT: set(),
    ports.KUBE_PROXY_HEALTH_PORT: set(),
    ports.NFS_PORT: {
        "playbooks/library/pai_nfs_check.py",
        "playbooks/module_utils/pai_nfs.py",
        "roles/storage_server/vars/main.yml",
    },
    ports.HIVED_PORT: {"installer/pai_install/agents/hived_bridge/settings.py"},
    ports.HIVED_EXTENDER_PORT: {"installer/pai_install/agents/hived_bridge/settings.py"},
    ports.HIVED_BRIDGE_PORT: {"installer/pai_install/agents/hived_bridge/settings.py"},
    # OpenPAI's defaults, and what an add-on says of its own ports
    ports.NODE_EXPORTER_PORT: {
        "installer/pai_install/site/services/monitoring.py",
        "roles/node_exporter/defaults/main.yml",
    },
    ports.PROMETHEUS_PORT: {"addons/monitoring/addon.yml", "installer/pai_install/site/services/monitoring.py"},
    ports.ALERTMANAGER_PORT: {"addons/monitoring/addon.yml", "installer/pai_install/site/services/monitoring.py"},
    ports.GOSSIP_PORT: set(),
    ports.KUBE_STATE_METRICS_PORT: {"addons/monitoring/addon.yml"},
    ports.KUBE_STATE_METRICS_OWN_PORT: {"addons/monitoring/addon.yml"},
    ports.CONSOLE_METRICS_PORT: set(),
    ports.LOG_STORE_PORT: {"addons/logs/addon.yml"},
    ports.LOG_COLLECTOR_PORT: {"addons/logs/addon.yml"},
    ports.SCHEDULER_PORT: {
        "addons/hived/objects/hived.yaml.j2",
        "playbooks/library/pai_certificates_renew.py",
        "playbooks/library/pai_kubeadm.py",
    },
    ports.CONTROLLER_MANAGER_PORT: {
        "playbooks/library/pai_certificates_renew.py",
        "playbooks/library/pai_kubeadm.py",
    },
    ports.ETCD_METRICS_PORT: set(),
    ports.VXLAN_PORT: {"addons/flannel/addon.yml", "playbooks/library/pai_cluster_check.py"},
}
# what asks a machine about its ports knows them from the outside; pages and tests say what they say
APART = re.compile(r"/(molecule|tests)/|README|\.json$|/stand_in/|go\.(mod|sum)$|/catalogue\.yml$|\.lock$")


def files() -> Iterator[Path]:
    """Everything that is installed with the product."""
    for room in ("addons", "installer/pai_install", "inventories", "playbooks", "roles"):
        yield from (path for path in (ROOT / room).rglob("*") if path.is_file())


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Path -> text."""
    named = ((path.relative_to(ROOT).as_posix(), path) for path in files())
    readable = {name: path for name, path in named if not APART.search(name) and "__pycache__" not in name}
    return {name: path.read_text(errors="replace") for name, path in readable.items() if name != OWN}


@pytest.mark.parametrize("port", STANDS_IN)
def test_a_number_stands_where_it_is_known_to(port: int, texts: dict[str, str]) -> None:
    number = re.compile(rf"(?<![\d.]){port}(?![\d.]*\d)")
    found = {name for name, text in texts.items() if number.search(text)}
    assert found == STANDS_IN[port]


def test_every_port_is_looked_for() -> None:
    assert {value for value in vars(ports).values() if isinstance(value, int)} == STANDS_IN.keys()
