"""HiveD's physical cells and the machines of the layout: each machine once, and no device twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from pai_install.documents.problem import YamlPath
from pai_install.site.hived_cells import MAX_LEAVES, Cell, tops
from pai_install.site.model import Machine, Site
from pai_install.site.rules.problems import Wrong
from pai_install.site.rules.scheduling.clusters import of_machine
from pai_install.site.services.hived import HivedConfig
from pai_install.system.words import plural


def of_machines(site: Site, config: HivedConfig) -> Iterator[Wrong]:
    """Yields problems between written cells and machines."""
    machines = {machine.hostname: machine for machine in site.machines}
    taken, devices = _Taken(config), Counter[str]()
    nodes: list[Cell] = []
    for top in tops(config):
        yield from _unnamed(top)
        nodes += top.nodes()
    for node in nodes:
        path = (*node.path, "cellAddress")
        if not node.node:
            message = f"cellAddress is missing: HiveD would look for a machine called {node.index}"
            yield Wrong(node.path, "missing", message, "name the machine")
        else:
            yield from of_machine(path, node.node, machines.get(node.node), machines)
        if node.leaves > MAX_LEAVES:
            message = f"{node.leaves} of {node.chain.leaf} are more than one machine has"
            yield Wrong(path, "cell-devices", message, "correct childCellNumber")
            continue
        yield from taken.take(node)
        if node.node in machines and not without_devices(config, node.chain.leaf):
            devices[node.node] += node.leaves
            yield from _more(site, node, machines[node.node], devices[node.node])
    yield from _fewer(site, nodes, machines, devices)
    yield from _other_types(site, nodes, machines)


def _other_types(site: Site, nodes: list[Cell], machines: dict[str, Machine]) -> Iterator[Wrong]:
    """Yields names with different machine types in layout.yaml and in the block, each pair once."""
    reported: set[tuple[str, str]] = set()
    for node in nodes:
        here, there = node.chain.leaf, machines[node.node].sku if node.node in machines else ""
        if here in site.skus and there and there != here and (here, there) not in reported:
            reported.add((here, there))
            message = f"{node.node} is {there} in layout.yaml and {here} here, and layout.yaml has another {here}"
            remedy = f"rename {here} in one of the files: jobs get the machines of this block"
            yield Wrong((*node.path, "cellAddress"), "machine-type-differs", message, remedy, "warning")


def _unnamed(top: Cell) -> Iterator[Wrong]:
    for cell in top.below():
        if cell.depth < cell.chain.node and not cell.spec.cell_children:
            message = "cellChildren are missing: HiveD would look for machines called 0, 1 and so on"
            yield Wrong(cell.path, "missing", message, "list the machines below cellChildren")


def _devices(site: Site, machine: Machine) -> int:
    """Returns the number of devices of its machine type, or 0 if unknown."""
    sku = site.skus.get(machine.sku)
    return sum(sku.resources.values()) if sku is not None else 0


def _more(site: Site, node: Cell, machine: Machine, count: int) -> Iterator[Wrong]:
    has = _devices(site, machine)
    # Only the cell that exceeds the machine's devices is reported, not every later one as well.
    if count - node.leaves <= has < count:
        message = f"{node.node} is to have {count} devices, and its machine type {machine.sku} has {has}"
        remedy = "correct childCellNumber, or layout.yaml"
        yield Wrong((*node.path, "cellAddress"), "cell-devices", message, remedy)


def _fewer(site: Site, nodes: list[Cell], machines: dict[str, Machine], devices: Counter[str]) -> Iterator[Wrong]:
    reported: set[str] = set()
    for node in nodes:
        count = devices[node.node]
        has = _devices(site, machines[node.node]) if count else 0
        if count < has and node.node not in reported:
            reported.add(node.node)
            message = (
                f"{node.node} has {plural(has, 'device')} in layout.yaml, and {count} here: no job gets the others"
            )
            remedy = "correct childCellNumber, or leave it so"
            yield Wrong((*node.path, "cellAddress"), "cell-devices", message, remedy, "warning")


def without_devices(config: HivedConfig, leaf: str) -> bool:
    """Whether skuTypes know the leaf, and say of no device in it."""
    share = {**config.physical_cluster.gpu_types, **config.physical_cluster.sku_types}.get(leaf)
    return share is not None and not share.gpu and not share.gpu_type


@dataclass
class _Taken:
    """Devices of cells, by machine. A core is no device."""

    config: HivedConfig
    devices: dict[tuple[str, bool], dict[int, YamlPath]] = field(default_factory=dict)

    def take(self, node: Cell) -> Iterator[Wrong]:
        """Reserves a machine's devices. Yields problems for devices of another cell."""
        # Cells of processors have numbers of their own. Number 0 may be a device and a processor at once.
        key = (node.node, without_devices(self.config, node.chain.leaf))
        taken = self.devices.setdefault(key, {}) if node.node else {}
        reported: set[YamlPath] = set()
        for number, path in node.leaf_numbers():
            if number is None or number < 0:
                message = "is not the number of a device: HiveD ends with an error"
                yield Wrong((*path, "cellAddress"), "device-number", message, "write 0, 1 and so on")
            elif taken.setdefault(number, path) != path and path not in reported:
                reported.add(path)
                message = (
                    f"device {number} of {node.node or 'this machine'} is here a second time: two jobs would get it"
                )
                yield Wrong((*path, "cellAddress"), "device-twice", message, "list each machine, and each device, once")
