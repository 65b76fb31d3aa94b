"""A site of a thousand machines, its components and what its machines look like; and a plan for it."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pai_install.components.catalogue import load_catalogue, resolve
from pai_install.components.model import ComponentSet, FileArtifact, ImageArtifact, ManifestArtifact
from pai_install.operations.node_add import NodeAdd
from pai_install.parts.registry import PARTS, make_context
from pai_install.plan.inventory import build_inventory
from pai_install.plan.model import Inventory
from pai_install.plan.observation import Observation
from pai_install.plan.observed import Observed, parse_observed
from pai_install.plan.planner import make_plan
from pai_install.report.plan import plan_document
from pai_install.site import Site, load_site

MACHINES = 1000
CONTROL_PLANES = 3
SKUS = """\
machine-sku:
  master: {mem: 64Gi, cpu: {vcore: 16}}
  gpu: {mem: 512Gi, cpu: {vcore: 64}, computing-device: {type: nvidia.com/gpu, model: A100, count: 8}}
machine-list:
"""


def write_site(folder: Path, machines: int = MACHINES) -> None:
    """Writes layout.yaml and config.yaml of a site with so many machines, 3 of them control planes."""
    rows = "".join(_machine(number) for number in range(machines))
    (folder / "layout.yaml").write_text(SKUS + rows)
    (folder / "config.yaml").write_text("user: pai\nssh_key_file_path: key\n")
    (folder / "key").touch(mode=0o600)


def _machine(number: int) -> str:
    master = number < CONTROL_PLANES
    sku, role = ("master", "pai-master") if master else ("gpu", "pai-worker")
    return (
        f"  - hostname: node-{number:04}\n    hostip: 10.20.{number // 250}.{number % 250 + 1}\n"
        f'    machine-type: {sku}\n    {role}: "true"\n'
    )


def components() -> ComponentSet:
    """The catalogue's components as if they were in the cache; nothing is read from their paths."""
    catalogue = load_catalogue()
    selection = resolve(catalogue)
    files, images, manifests = [], [], []
    for pick in selection.picks:
        component = catalogue.components[pick.component]
        for name, spec in component.files.items():
            files.append(FileArtifact(name, pick.version, spec.kind, Path("/cache") / name, "0" * 64, 1))
        for name, image in component.images.items():
            tag = image.tag.format(version=pick.version)
            images.append(ImageArtifact(name, tag, f"sha256:{'0' * 64}", Path("/cache") / name))
        manifests += [
            ManifestArtifact(name, pick.version, Path("/cache") / name, "0" * 64) for name in component.manifests
        ]
    return ComponentSet(tuple(files), tuple(images), selection.kubernetes_version, tuple(manifests))


def inventory_of(site: Site) -> Inventory:
    """The site's inventory, every role at the same version."""
    digests = {part.name: "0" * 12 for part in PARTS}
    return build_inventory(make_context(site, components(), site.directory / ".pai"), digests)


def results(inventory: Inventory) -> Iterator[tuple[str, dict[str, Any]]]:
    """Host -> what the fact module answers on machines that are as they should be."""
    for host, values in inventory.host_vars.items():
        wanted: Mapping[str, Mapping[str, str]] = {**inventory.shared_vars, **values}["pai_settings"]
        roles = {role: {"settings": dict(found), "drift": []} for role, found in wanted.items()}
        facts = {"hostname": host, "machine_id": f"{host:>32}", "kubernetes": {"node": True}, "roles": roles}
        yield host, {"ansible_facts": {"pai": facts}}


def converged(inventory: Inventory) -> dict[str, Observed]:
    """Every machine as it should be."""
    return {host: parse_observed(result) for host, result in results(inventory)}


def steps_of_others(site: Site, inventory: Inventory, before: Mapping[str, Observed]) -> int:
    """Planned steps of the machines of `before`, which are as a smaller site wanted them; all others are new."""
    seen = {host: before.get(host, Observed(hostname=host)) for host in inventory.host_vars}
    planned = make_plan(site, inventory, seen)
    return sum(host.host in before for step in planned.steps for host in step.hosts)


def asked_for_others(site: Site, inventory: Inventory, before: Mapping[str, Observed]) -> set[str]:
    """The machines of `before` that `node add` of all others observes, or has a step for."""
    operation = NodeAdd(nodes=tuple(host for host in inventory.host_vars if host not in before))
    watched = operation.watched(site)
    seen = {host: before.get(host, Observed(hostname=host)) for host in watched}
    nodes = tuple({"kind": "Node", "metadata": {"name": host}, "spec": {}, "status": {}} for host in before)
    planned = operation.plan(site, Observation(inventory, seen, answers=(nodes,)))
    return {*watched, *planned.hosts} & before.keys()


def plan(folder: Path) -> dict[str, float]:
    """Plans a site thrice: all machines new; all as they should be; and one more. Gives bytes and counts.

    first_plan_cpu_s: of the process until the first plan is saved, with its start and the reading of the site.
    """
    site = load_site(folder).site
    inventory = inventory_of(site)
    everything = make_plan(site, inventory, {host: Observed(hostname=host) for host in inventory.host_vars})
    saved = json.dumps(plan_document(everything, ()).as_json())
    first = time.process_time()
    as_should_be = converged(inventory)
    nothing = make_plan(site, inventory, as_should_be)
    write_site(folder, len(site.machines) + 1)
    grown = load_site(folder).site
    wanted = inventory_of(grown)
    return {
        "steps_elsewhere_for_one_more": steps_of_others(grown, wanted, as_should_be),
        "machines_asked_for_one_more": len(asked_for_others(grown, wanted, as_should_be)),
        "inventory_bytes": len(json.dumps(inventory.as_ansible())),
        "plan_bytes": len(saved),
        "first_plan_cpu_s": first,
        "steps": sum(len(phase.hosts) for phase in everything.steps),
        "steps_when_converged": sum(len(phase.hosts) for phase in nothing.steps),
    }


if __name__ == "__main__":
    print(json.dumps(plan(Path(sys.argv[1]))))  # noqa: T201 - the answer of a process of its own
