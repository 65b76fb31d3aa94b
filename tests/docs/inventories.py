"""Programs of the example inventory, from the catalogue."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pai_install.components.catalogue import Catalogue, load_catalogue

PROGRAMS_FILE = "inventories/example/group_vars/all/programs.yml"
ARCHITECTURE: Literal["amd64"] = "amd64"
# file of the catalogue -> component, and where it is installed; the lists of the two roles that install programs
RUNTIME = {"containerd": ("containerd", "/usr/local"), "runc": ("runc", "/usr/local/sbin/runc")}
KUBERNETES = {
    **{name: ("kubernetes", f"/usr/local/bin/{name}") for name in ("kubeadm", "kubelet", "kubectl")},
    "cni-plugins": ("cni-plugins", "/opt/cni/bin"),
    "crictl": ("cri-tools", "/usr/local/bin"),
}


def programs_file() -> str:
    """group_vars of the default Kubernetes version, as its publishers release it for one architecture."""
    return "\n".join(_lines(load_catalogue())) + "\n"


def _lines(catalogue: Catalogue) -> Iterator[str]:
    chosen = catalogue.kubernetes.sets[catalogue.kubernetes.default]
    yield "---"
    yield f"# Made by `make docs` from the catalogue, for {ARCHITECTURE}; a test compares."
    yield f"kubernetes_version: {chosen.kubernetes['upstream']}"
    for name in ("coredns", "etcd", "pause"):
        yield f"{name}_version: {chosen.with_[name]}"
    for variable, programs in (("runtime_programs", RUNTIME), ("kubernetes_programs", KUBERNETES)):
        yield f"{variable}:"
        for name, (component, destination) in programs.items():
            yield from _program(catalogue, name, component, destination)


def _program(catalogue: Catalogue, name: str, component: str, destination: str) -> Iterator[str]:
    chosen = catalogue.kubernetes.sets[catalogue.kubernetes.default]
    version = (
        chosen.kubernetes["upstream"]
        if component == "kubernetes"
        else catalogue.components[component].default["upstream"]
    )
    spec, release = catalogue.components[component].files[name], catalogue.components[component].versions[version]
    yield f"  - name: {name}"
    yield f"    version: {version}"
    yield f"    url: {spec.url.format(version=version, arch=ARCHITECTURE)}"
    yield f"    sha256: {release.sha256[name][ARCHITECTURE]}"
    yield f"    kind: {spec.kind}"
    yield f"    dest: {destination}"
