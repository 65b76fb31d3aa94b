"""Random sites that are divided as they may be: no more is guaranteed than there is."""

from __future__ import annotations

from hypothesis import strategies as st

from pai_install.scheduling.model import PRIORITIES, Backend, Scheduling, Share, Supply, VirtualCluster

NAMES = ("default", "research", "product", "lab")
GROUPS = ("default", "vision", "nlp", "team-a")
RESOURCES = ("nvidia.com/gpu", "huawei.com/Ascend910", "")


@st.composite
def supplies(draw: st.DrawFn, sku: str) -> Supply:
    """One to four machines of an SKU."""
    machines = tuple(f"{sku}-{number}" for number in range(draw(st.integers(1, 4))))
    units = draw(st.integers(1, 8))
    memory = draw(st.integers(1, 2**37))
    return Supply(sku, machines, draw(st.sampled_from(RESOURCES)), units, draw(st.integers(1, 20_000)), memory)


@st.composite
def divided_sites(draw: st.DrawFn, backend: Backend = "kueue") -> Scheduling:
    """A site with virtual clusters: some machines pinned, of the others a part guaranteed."""
    supply = {sku: draw(supplies(sku)) for sku in draw(st.sampled_from([("a100",), ("a100", "v100"), ("a", "b", "c")]))}
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    owners = {machine: draw(st.sampled_from([*names, None, None])) for it in supply.values() for machine in it.machines}
    free = {sku: it.units * sum(owners[machine] is None for machine in it.machines) for sku, it in supply.items()}
    clusters = []
    for name in names:
        shares = tuple(draw(shares_of(it, free)) for it in supply.values() if draw(st.booleans()))
        groups = tuple(draw(st.lists(st.sampled_from(GROUPS), max_size=3, unique=True)))
        own = tuple(machine for machine, owner in owners.items() if owner == name)
        highest = draw(st.sampled_from(list(PRIORITIES)))
        clusters.append(VirtualCluster(name, shares, own, groups, groups, highest))
    return Scheduling(backend, supply, tuple(clusters))


@st.composite
def shares_of(draw: st.DrawFn, supply: Supply, free: dict[str, int]) -> Share:
    """A part of what is left of an SKU; `free` has less then."""
    units = draw(st.integers(0, free[supply.sku]))
    free[supply.sku] -= units
    borrow = draw(st.none() | st.integers(0, 8))
    return Share(supply.sku, units, units * supply.memory_bytes, draw(st.integers(0, units)), borrow)
