"""HiveD's feature demo in the shapes of this project: cells, jobs, and what happens. Played in the lab, then replayed.

A recorded run of the lab is tests/golden/hived/demo.json. `record` says what it consists of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

MACHINES = tuple(f"lab-worker{number}" for number in range(1, 6))
# a job says this where its instances write the devices that they got
PROGRAM = "echo devices $NVIDIA_VISIBLE_DEVICES; python3 -c 'import time; time.sleep(3600)'"
GROUP = "team"


def _types(leaf: str, **pools: int) -> dict[str, Any]:
    """Pairs of devices, machines of two pairs, and pools of so many machines. pools: name -> machines."""
    return {
        f"{leaf}-PAIR": {"childCellType": leaf, "childCellNumber": 2},
        f"{leaf}-NODE": {"childCellType": f"{leaf}-PAIR", "childCellNumber": 2, "isNodeLevel": True},
        **{name: {"childCellType": f"{leaf}-NODE", "childCellNumber": count} for name, count in pools.items()},
    }


def _pool(name: str, *machines: str, pins: Mapping[str, str] | None = None) -> dict[str, Any]:
    cells = [
        {"cellAddress": machine, **({"pinnedCellId": pins[machine]} if pins and machine in pins else {})}
        for machine in machines
    ]
    return {"cellType": name, "cellChildren": cells}


def _block(types: dict[str, Any], cells: list[dict[str, Any]], clusters: dict[str, Any]) -> str:
    leaves = sorted({name.partition("-")[0] for name in types if name.endswith("-PAIR")})
    skus = {leaf: {"gpu": 1, "cpu": 1, "memory": "256Mi"} for leaf in leaves}
    physical = {"skuTypes": skus, "cellTypes": types, "physicalCells": cells}
    return yaml.safe_dump({"physicalCluster": physical, "virtualClusters": clusters}, sort_keys=False)


def _virtual(**cells: int) -> list[dict[str, Any]]:
    return [
        {"cellType": name.replace("__", ".").replace("_", "-"), "cellNumber": count} for name, count in cells.items()
    ]


ONE, TWO, THREE, FOUR, FIVE = MACHINES


def groups_of_machines() -> str:
    """A rack of three machines, one of them pinned, and one of two."""
    types = _types("K80", THREE=3, TWO=2)
    cells = [_pool("THREE", ONE, TWO, THREE, pins={TWO: "OWN"}), _pool("TWO", FOUR, FIVE)]
    return _block(
        types,
        cells,
        {
            "vc1": {"virtualCells": _virtual(THREE__K80_NODE=1), "pinnedCells": [{"pinnedCellId": "OWN"}]},
            "vc2": {"virtualCells": _virtual(THREE__K80_NODE__K80_PAIR=2)},
            "default": {"virtualCells": _virtual(TWO=1)},
        },
    )


def two_types(
    old: tuple[str, ...] = (ONE, TWO, THREE, FOUR), new: tuple[str, ...] = (FIVE,), vc1: int = 1, default: int = 2
) -> str:
    """A pool of each of two device types. vc1, default: machines of the old type that each is guaranteed.

    vc1 has all machines of the new type.
    """
    types = {**_types("K80", OLD=len(old)), **(_types("M60", NEW=len(new)) if new else {})}
    cells = [_pool("OLD", *old), *([_pool("NEW", *new)] if new else [])]
    own = [*_virtual(OLD__K80_NODE=vc1), *(_virtual(NEW__M60_NODE=len(new)) if new else [])]
    clusters = {"vc1": {"virtualCells": own}}
    if default:
        clusters["default"] = {"virtualCells": _virtual(OLD__K80_NODE=default)}
    return _block(types, cells, clusters)


@dataclass(frozen=True)
class DemoRole:
    """Instances of a role, with devices each."""

    instances: int
    gpus: int = 1
    sku: str = ""
    pin: str = ""
    group: str = ""
    command: str = PROGRAM


@dataclass(frozen=True)
class DemoJob:
    """A job of OpenPAI's protocol. lazy: HiveD may make it opportunistic before it evicts it."""

    name: str
    cluster: str = "vc1"
    priority: str = "prod"
    roles: Mapping[str, DemoRole] = field(default_factory=dict)
    gang: bool = True
    lazy: bool = False

    def text(self, image: str) -> str:
        """The file."""
        options = {
            name: {
                key: value
                for key, value in (
                    ("skuType", role.sku),
                    ("pinnedCellId", role.pin),
                    ("affinityGroupName", role.group),
                )
                if value
            }
            for name, role in self.roles.items()
        }
        hived: dict[str, Any] = {"jobPriorityClass": self.priority, "taskRoles": options}
        if self.lazy:
            hived["lazyPreemptionEnable"] = True
        content = {
            "protocolVersion": 2,
            "name": self.name,
            "type": "job",
            "prerequisites": [{"type": "dockerimage", "name": "image", "uri": image}],
            "taskRoles": {
                name: {
                    "instances": role.instances,
                    "dockerImage": "image",
                    "resourcePerInstance": {"cpu": 1, "memoryMB": 128, "gpu": role.gpus},
                    # as in the demo of the pairs: more than there are
                    "completion": {"minFailedInstances": 1, "minSucceededInstances": 6},
                    "commands": [role.command],
                }
                for name, role in self.roles.items()
            },
            "defaults": {"virtualCluster": self.cluster},
            "extras": {"gangAllocation": self.gang, "hivedScheduler": hived},
        }
        return yaml.safe_dump(content, sort_keys=False)


def job(name: str, instances: int, gpus: int = 1, sku: str = "K80", **more: Any) -> DemoJob:
    """A job of one role."""
    return DemoJob(name, roles={"train": DemoRole(instances, gpus, sku)}, **more)


def services_of(block: str) -> str:
    """services-configuration.yaml with a block, and a group that may use all of its virtual clusters."""
    clusters = ", ".join(yaml.safe_load(block)["virtualClusters"])
    lines = "".join(f"    {line}\n" for line in block.splitlines())
    groups = f"[{{groupname: {GROUP}, extension: {{acls: {{virtualClusters: [{clusters}]}}}}}}]"
    return f"hivedscheduler:\n  config: |\n{lines}authentication: {{group-manager: {{grouplist: {groups}}}}}\n"
