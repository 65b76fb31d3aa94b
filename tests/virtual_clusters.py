"""Divided sites and what each scheduler is given for them: compiled, compared, and written anew.

`python -m tests.virtual_clusters` writes tests/golden/scheduling/BACKEND.yml, the objects, and CASE/BACKEND.remarks:
look at the difference before you keep it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from pai_install.schedulers.compile import labels_of, objects_of, remarks
from pai_install.scheduling.model import BACKENDS, Backend, Level, Priority, Scheduling, Share, Supply, VirtualCluster
from tests.addons import as_yaml

GOLDEN = Path(__file__).parent / "golden" / "scheduling"
GIBIBYTE = 2**30


def gpus(sku: str, machines: int, units: int = 8, resource: str = "nvidia.com/gpu") -> Supply:
    """Machines SKU-1, SKU-2 and so on, each device with 11.7 processors and 115 GiB."""
    names = tuple(f"{sku.lower()}-{number}" for number in range(1, machines + 1))
    return Supply(sku, names, resource, units, 11_700, 115 * GIBIBYTE)


def cores(sku: str, machines: int, units: int = 57) -> Supply:
    """Machines without devices, each core with 4 GiB."""
    names = tuple(f"{sku}-{number}" for number in range(1, machines + 1))
    return Supply(sku, names, "", units, 1000, 4 * GIBIBYTE)


def share(supply: Supply, units: int, lend: int | None = None, borrow: int | None = None) -> Share:
    """Units with the memory that goes with them; all of it lent without `lend`."""
    return Share(supply.sku, units, units * supply.memory_bytes, units if lend is None else lend, borrow)


def cluster(
    name: str,
    *shares: Share,
    pinned: tuple[str, ...] = (),
    groups: tuple[str, ...] | None = None,
    highest: Priority = "crit",
) -> VirtualCluster:
    """A virtual cluster of the group with the same name, where no others are named."""
    groups = (name,) if groups is None else groups
    return VirtualCluster(name, shares, pinned, groups, groups, highest)


def site(*supply: Supply, clusters: tuple[VirtualCluster, ...], levels: tuple[Level, ...] = ()) -> Scheduling:
    """A site whose scheduler is still to be chosen."""
    return Scheduling("kueue", {it.sku: it for it in supply}, clusters, levels)


def with_backend(scheduling: Scheduling, backend: Backend) -> Scheduling:
    """The same site with another scheduler."""
    return Scheduling(backend, scheduling.supply, scheduling.clusters, scheduling.levels)


def quick_start() -> Scheduling:
    """OpenPAI's: all machines are of one SKU and of one virtual cluster, whose users are everyone."""
    supply = gpus("DT", 2, 4)
    return site(supply, clusters=(cluster("default", share(supply, 8)),))


def two_teams() -> Scheduling:
    """One lends all, the other half; one may borrow as much again; some is no one's."""
    supply = gpus("a100", 4)
    return site(
        supply,
        clusters=(
            cluster("research", share(supply, 16), groups=("vision", "nlp")),
            cluster("product", share(supply, 12, lend=6, borrow=12), highest="prod"),
        ),
    )


def cpu_only() -> Scheduling:
    """A virtual cluster without devices beside one with some, and one that may only borrow."""
    plain, supply = cores("cpu", 3), gpus("a100", 2)
    return site(
        supply,
        plain,
        clusters=(
            cluster("default", share(supply, 16), groups=("default",)),
            cluster("batch", Share("cpu", 100, 300 * GIBIBYTE, 50, 0)),
            cluster("guests", share(plain, 0, borrow=20), highest="oppo"),
        ),
    )


def pinned() -> Scheduling:
    """Machines of one's own beside a share, and nothing but them."""
    supply, other = gpus("a100", 4), gpus("v100", 2, 4)
    return site(
        supply,
        other,
        clusters=(
            cluster("research", share(supply, 8), pinned=("a100-4", "v100-1")),
            cluster("product", share(supply, 8, lend=0), share(other, 4)),
            cluster("lab", pinned=("a100-3",), groups=("lab", "vision")),
        ),
    )


def racks() -> Scheduling:
    """Levels above the machine."""
    supply = gpus("h100", 4)
    levels = (Level("rack", "example.com/rack"), Level("nvlink", "example.com/nvlink-domain"))
    return site(supply, clusters=(cluster("default", share(supply, 32)),), levels=levels)


def mixed() -> Scheduling:
    """Several SKUs and makers, a name that Kubernetes does not take, an SKU that no one has, no group for one."""
    old, new, npu, plain = (
        gpus("A100_80G", 2),
        gpus("v100", 3, 4),
        gpus("npu", 2, 8, "huawei.com/Ascend910"),
        cores("cpu", 1),
    )
    return site(
        old,
        new,
        npu,
        plain,
        clusters=(
            cluster("default", share(old, 10, borrow=0), share(new, 4), groups=("default", "team-a")),
            cluster("asia", share(npu, 16), share(new, 5), groups=("team-a",), highest="test"),
            cluster("closed", share(new, 2), groups=()),
        ),
    )


CASES: Mapping[str, Callable[[], Scheduling]] = {
    it.__name__: it for it in (quick_start, two_teams, cpu_only, pinned, racks, mixed)
}


def expected(backend: Backend) -> Path:
    """The objects of all cases, each object once."""
    return GOLDEN / f"{backend}.yml"


def expected_remarks(case: str, backend: Backend) -> Path:
    """Labels of machines, and remarks."""
    return GOLDEN / case.replace("_", "-") / f"{backend}.remarks"


def compiled(backend: Backend) -> str:
    """The objects of all cases as they are kept: each once, below the names of its cases, in the order of the cases."""
    cases: dict[str, list[str]] = {}
    order: list[str] = []
    for name, case in CASES.items():
        place = 0
        for one in objects_of(with_backend(case(), backend)):
            text = as_yaml([one]).removeprefix("---\n")
            if text not in cases:
                order.insert(place, text)
            place = order.index(text) + 1
            cases.setdefault(text, []).append(name)
    return "".join(f"---\n# {', '.join(cases[text])}\n{text}" for text in order)


def told(case: str, backend: Backend) -> str:
    """Labels of machines, a line each, and remarks, as they are kept."""
    scheduling = with_backend(CASES[case](), backend)
    labels = (
        f"{machine} {' '.join(f'{name}={value}' for name, value in found.items())}"
        for machine, found in labels_of(scheduling).items()
    )
    return "".join(f"{line}\n" for line in (*labels, "", *remarks(scheduling)))


if __name__ == "__main__":
    for backend in BACKENDS:
        expected(backend).write_text(compiled(backend))
        for case in CASES:
            path = expected_remarks(case, backend)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(told(case, backend))
