"""Virtual clusters as HiveD's configuration: cells, and whose they are. Pure.

Types are named by the SKU and the level alone, as OpenPAI's own generator names them: HiveD lets jobs be evicted whose
cell type is gone, so a count in a name would cost jobs whenever a machine comes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pai_install.ports import HIVED_PORT
from pai_install.scheduling import amounts
from pai_install.scheduling.job_queue import leaf_types
from pai_install.scheduling.model import Scheduling, Supply, VirtualCluster

Object = dict[str, Any]

# HiveD has neither TLS nor logins, and whoever reaches it can bind pods: only its own pod does
_ADDRESS = f"127.0.0.1:{HIVED_PORT}"
# as OpenPAI has it: how long HiveD holds others back for a pod that has to wait
_BLOCK_MILLISECONDS = 50
_DEFAULT = "default"
# HiveD runs in a pod with an account of its own, and only its own pod reaches it
_OURS = frozenset({"kubeApiServerAddress", "kubeConfigFilePath", "webServerAddress", "forcePodBindThreshold"})
# HiveD would bind a pod by itself after so many calls, to a node that may refuse it: the greatest number
_NEVER = 2**31 - 1
_MEBIBYTE = 2**20


def hived_config(scheduling: Scheduling) -> Object:
    """The configuration of HiveD: OpenPAI's block as it is written, else cells made of the virtual clusters."""
    own = {
        "webServerAddress": _ADDRESS,
        "waitingPodSchedulingBlockMilliSec": _BLOCK_MILLISECONDS,
        "forcePodBindThreshold": _NEVER,
    }
    block = scheduling.block if scheduling.block is not None else hived_block(scheduling)
    return {**own, **{key: value for key, value in block.items() if key not in _OURS}}


def hived_block(scheduling: Scheduling) -> Object:
    """Cells and virtual clusters, which an admin of OpenPAI writes.

    HiveD does not start with a chain that is in no virtual cluster: one of which nothing is guaranteed is attached to
    the virtual cluster default with 0 cells, or to the first.
    """
    names = leaf_types(scheduling.supply)
    present = [supply for supply in scheduling.supply.values() if supply.machines]
    holder = _holder(scheduling)
    return {
        "physicalCluster": {
            "skuTypes": {names[supply.sku]: _unit(supply) for supply in present},
            "cellTypes": {
                kind: it for supply in present for kind, it in _cell_types(scheduling, supply, names[supply.sku])
            },
            "physicalCells": [
                {"cellType": _pool_type(names[supply.sku]), "cellChildren": list(_machines(scheduling, supply))}
                for supply in present
            ],
        },
        "virtualClusters": {
            cluster.name: _virtual_cluster(scheduling, cluster, names, attached=cluster.name == holder)
            for cluster in scheduling.clusters
        },
    }


def lost_cell_types(before: Scheduling, after: Scheduling) -> dict[str, frozenset[str]]:
    """Returns virtual cluster -> names of its cell types and pinned cells that it loses.

    HiveD finds the cells of a running job by these names. A job without its cells becomes opportunistic.
    """
    had, has = (_names_of_cells(hived_config(one)) for one in (before, after))
    lost = {name: cells - has.get(name, frozenset()) for name, cells in had.items()}
    return {name: cells for name, cells in lost.items() if cells}


def _names_of_cells(config: Object) -> dict[str, frozenset[str]]:
    """Virtual cluster -> names of its cell types, without their chains, and of its pinned cells."""
    return {
        name: frozenset(str(cell.get("cellType")).rpartition(".")[2] for cell in one.get("virtualCells") or ())
        | frozenset(str(pin.get("pinnedCellId")) for pin in one.get("pinnedCells") or ())
        for name, one in config["virtualClusters"].items()
    }


def _node_type(leaf: str) -> str:
    return f"{leaf}-NODE"


def _pool_type(leaf: str) -> str:
    return f"{leaf}-NODE-POOL"


def _holder(scheduling: Scheduling) -> str:
    names = [cluster.name for cluster in scheduling.clusters]
    return _DEFAULT if _DEFAULT in names else next(iter(names), "")


def _unit(supply: Supply) -> Object:
    """What goes with one cell, as OpenPAI's rest-server reads it; HiveD does not."""
    device = {"gpu": 1} if supply.resource else {}
    memory = max(1, supply.memory_bytes // _MEBIBYTE)
    return {**device, "cpu": max(1, supply.cpu_millis // 1000), "memory": f"{memory}Mi"}


def _cell_types(scheduling: Scheduling, supply: Supply, leaf: str) -> Iterator[tuple[str, Object]]:
    yield _node_type(leaf), {"childCellType": leaf, "childCellNumber": supply.units, "isNodeLevel": True}
    number = len(supply.machines) + _missing(scheduling, supply)
    yield _pool_type(leaf), {"childCellType": _node_type(leaf), "childCellNumber": number}


def _machines(scheduling: Scheduling, supply: Supply) -> Iterator[Object]:
    """All machines of an SKU. One that is pinned is a cell with its own name."""
    for machine in supply.machines:
        yield {"cellAddress": machine, **({"pinnedCellId": machine} if machine in scheduling.pinned else {})}
    for number in range(_missing(scheduling, supply)):
        yield {"cellAddress": f"absent-{number + 1}"}


def _missing(scheduling: Scheduling, supply: Supply) -> int:
    """Machines that are guaranteed and absent: HiveD does not start without them, and takes unknown ones for broken."""
    shares = [amounts.guaranteed(scheduling, cluster, supply.sku).units for cluster in scheduling.clusters]
    whole, single = sum(it // supply.units for it in shares), sum(it % supply.units for it in shares)
    there = scheduling.free(supply.sku) // supply.units
    return max(0, whole + -(-single // supply.units) - there)


def _virtual_cluster(
    scheduling: Scheduling, cluster: VirtualCluster, names: Mapping[str, str], *, attached: bool
) -> Object:
    idle = list(_idle(scheduling)) if attached else []
    cells = [*_virtual_cells(scheduling, cluster, names), *(_virtual_cell(names[sku], 0) for sku in idle)]
    pins = [{"pinnedCellId": machine} for machine in cluster.pinned]
    return {"virtualCells": cells, **({"pinnedCells": pins} if pins else {})}


def _virtual_cells(scheduling: Scheduling, cluster: VirtualCluster, names: Mapping[str, str]) -> Iterator[Object]:
    """Whole machines, and single units where that leaves a rest: a pod with several needs a cell that has them."""
    for share in cluster.shares:
        whole, single = divmod(share.units, scheduling.supply[share.sku].units)
        if whole:
            yield _virtual_cell(names[share.sku], whole)
        if single:
            yield _virtual_cell(names[share.sku], single, names[share.sku])


def _virtual_cell(leaf: str, number: int, *below: str) -> Object:
    return {"cellType": ".".join((_pool_type(leaf), _node_type(leaf), *below)), "cellNumber": number}


def _idle(scheduling: Scheduling) -> Iterator[str]:
    """SKUs of whose shared machines no virtual cluster is guaranteed anything."""
    for sku, supply in scheduling.supply.items():
        shares = (amounts.guaranteed(scheduling, cluster, sku).units for cluster in scheduling.clusters)
        if supply.machines and not any(shares):
            yield sku
