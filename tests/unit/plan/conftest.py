"""A site, its components, and machines as they were seen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pai_install.components.catalogue import load_catalogue
from pai_install.components.model import ComponentSet, FileArtifact, ImageArtifact, ManifestArtifact
from pai_install.parts.context import Context
from pai_install.parts.registry import PARTS, make_context
from pai_install.plan.inventory import build_inventory
from pai_install.plan.model import Inventory
from pai_install.plan.observed import Membership, Observed, RoleRecord
from pai_install.site import Site, load_site

FILES = (
    "node-exporter",
    *("containerd", "runc", "nvidia-container-toolkit"),
    *("kubeadm", "kubelet", "kubectl", "cni-plugins"),
    *("registry", "etcdctl", "etcdutl", "crictl"),
)
IMAGES = {
    "pause": "3.10.2",
    "coredns": "v1.14.2",
    "etcd": "3.6.8-0",
    "flannel": "v0.28.4",
    "busybox": "1.37",
    "k8s-device-plugin": "v0.19.0",
    "local-path-provisioner": "v0.0.30",
    "smbplugin": "v1.20.3",
    "azurefile-csi": "v1.35.7",
    "blob-csi": "v1.27.9",
    "csi-node-driver-registrar": "v2.17.0",
    "livenessprobe": "v2.19.0",
}

LAYOUT = """
machine-sku:
  cpu: {mem: 8Gi, cpu: {vcore: 4}}
  gpu: {mem: 8Gi, cpu: {vcore: 4}, computing-device: {type: nvidia.com/gpu, model: A100, count: 8}}
machine-list:
  - {hostname: master, hostip: 10.0.0.1, machine-type: cpu, pai-master: "true"}
  - {hostname: worker1, hostip: 10.0.0.2, machine-type: gpu, pai-worker: "true"}
  - {hostname: worker2, hostip: 10.0.0.3, machine-type: cpu, pai-worker: "true"}
"""
CONFIG = "user: pai\npassword: planted-secret\n"


@pytest.fixture
def make_site(tmp_path: Path) -> Callable[..., Site]:
    """Writes the files of a site, reads them."""

    def make(layout: str = LAYOUT, config: str = CONFIG, services: str = "") -> Site:
        (tmp_path / "layout.yaml").write_text(layout)
        (tmp_path / "config.yaml").write_text(config)
        if services:
            (tmp_path / "services-configuration.yaml").write_text(services)
        return load_site(tmp_path).site

    return make


@pytest.fixture
def site(make_site: Callable[..., Site]) -> Site:
    """One control plane, a GPU worker, a CPU worker."""
    return make_site()


@pytest.fixture
def components(tmp_path: Path) -> ComponentSet:
    """One of each of the catalogue's; nothing is read from the paths."""
    catalogued = load_catalogue().components.values()
    others = {name: "1" for component in catalogued for name in component.image_names if name not in IMAGES}
    manifests = [name for component in catalogued for name in component.manifests]
    return ComponentSet(
        files=tuple(
            FileArtifact(name, "1.0", "binary", tmp_path / name, f"{number:064x}", 1)
            for number, name in enumerate(FILES)
        ),
        images=tuple(
            ImageArtifact(name, tag, f"sha256:{tag}", tmp_path / name) for name, tag in {**others, **IMAGES}.items()
        ),
        kubernetes_version="1.36.3",
        manifests=tuple(ManifestArtifact(name, "1", tmp_path / name, "0" * 64) for name in manifests),
    )


@pytest.fixture
def context(site: Site, components: ComponentSet) -> Context:
    """What parts make their variables from."""
    return make_context(site, components, site.directory / ".pai")


@pytest.fixture
def inventory(context: Context) -> Inventory:
    """The site's inventory, every role at digest "1"."""
    return build_inventory(context, dict.fromkeys(ROLES, "1"))


ROLES = tuple(part.name for part in PARTS)


def converged(inventory: Inventory) -> dict[str, Observed]:
    """Every machine exactly as the inventory says."""
    seen = {}
    for host, values in inventory.host_vars.items():
        settings = values.get("pai_settings", inventory.shared_vars.get("pai_settings"))
        assert settings is not None
        records = {role: RoleRecord(settings=found) for role, found in settings.items()}
        seen[host] = Observed(hostname=host, roles=records, kubernetes=Membership(node=True))
    return seen
