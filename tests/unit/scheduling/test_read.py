"""A site's sections, or HiveD's block, as one value."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import get_args

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from pai_install.scheduling.model import BACKENDS, PRIORITIES, Level, Priority, Scheduling, Share
from pai_install.scheduling.read import migrated_of, remarks_of, scheduling_of
from pai_install.site.load import load_site, read_site
from pai_install.site.schedulers import scheduler_of
from pai_install.site.services.virtual_clusters import PRIORITY_NAMES, TYPES, PriorityName, SchedulerType
from tests.unit.site.rules.scheduling.blocks import BLOCK, edited
from tests.unit.site.rules.scheduling.sites import ABSENT, GROUPS, LAYOUT
from tests.unit.site.sites import write_site

GI = 2**30
# 90 % of a machine of the layout, for one device or core
A100_BYTES, EPYC_BYTES = 900 * GI // 8, 288 * GI // 36
VALID = """\
scheduler:
  type: kueue
  topology:
    - {name: rack, label: rack}
virtual-clusters:
  - name: research
    groups: [Vision_1]
    quota:
      - {sku: a100, machines: 1, lend: 4, borrow: 16}
      - {sku: epyc, cores: 10, memory: 64Gi, lend: none, borrow: none}
    pinned: [g3]
    priorities: {highest: prod}
  - name: default
    quota:
      - {sku: a100, devices: 8}
      - {sku: epyc, cores: 26}
"""


def read(folder: Path, services: str, layout: str = LAYOUT) -> Scheduling:
    """What a valid site says."""
    found = scheduling_of(load_site(write_site(folder, layout=layout, services=services)).site)
    assert found is not None
    return found


def migrated(folder: Path, services: str, layout: str = LAYOUT) -> Scheduling:
    """The same by the machine types of the layout."""
    found = migrated_of(load_site(write_site(folder, layout=layout, services=services)).site)
    assert found is not None
    return found


def remarks(folder: Path, services: str, layout: str = LAYOUT) -> tuple[str, ...]:
    """What of a valid site has no counterpart."""
    return remarks_of(load_site(write_site(folder, layout=layout, services=services)).site)


def test_the_words_of_both_sides_are_the_same() -> None:
    assert (get_args(SchedulerType), TYPES) == (BACKENDS, BACKENDS)
    assert (get_args(PriorityName), PRIORITY_NAMES) == (get_args(Priority), tuple(PRIORITIES))


def test_a_site_that_says_nothing_has_none(tmp_path: Path) -> None:
    for number, text in enumerate((None, GROUPS, "hivedscheduler: {config: ''}\n")):
        site = load_site(write_site(tmp_path / str(number), layout=LAYOUT, services=text)).site
        assert scheduling_of(site) is None
        assert scheduler_of(site) is None
        assert remarks_of(site) == ()


def test_the_sections_are_read(tmp_path: Path) -> None:
    found = read(tmp_path, VALID + GROUPS)
    assert (found.backend, found.levels) == ("kueue", (Level("rack", "rack"),))
    research, default = found.clusters
    assert research.shares == (
        Share("a100", 8, 8 * A100_BYTES, lend=4, borrow=16, machines=1),
        Share("epyc", 10, 64 * GI, lend=0, borrow=0),
    )
    assert default.shares == (
        Share("a100", 8, 8 * A100_BYTES, lend=8, borrow=None),
        Share("epyc", 26, 26 * EPYC_BYTES, lend=26, borrow=None),
    )
    assert (research.pinned, default.pinned) == (("g3",), ())
    assert (research.usual, research.highest, default.usual, default.highest) == ("test", "prod", "test", "crit")
    assert remarks(tmp_path, VALID + GROUPS) == ()


def test_a_scheduler_alone_divides_nothing(tmp_path: Path) -> None:
    """Who names no virtual cluster gets the one that OpenPAI's users know, and no job waits for a quota in vain."""
    found = read(tmp_path, "scheduler: {type: kueue}\n" + GROUPS)
    (default,) = found.clusters
    assert (default.name, default.pinned) == ("default", ())
    assert {it.sku: (it.units, it.lend, it.borrow) for it in default.shares} == {
        sku: (supply.total, supply.total, None) for sku, supply in found.supply.items()
    }
    assert default.groups == read(tmp_path / "b", VALID + GROUPS).cluster("default").groups


def test_whether_a_site_has_any_is_known_without_reading_it(tmp_path: Path) -> None:
    for expected, text in (("kueue", VALID + GROUPS), ("hived", BLOCK)):
        site = load_site(write_site(tmp_path / expected, layout=LAYOUT, services=text)).site
        assert scheduler_of(site) == expected


def test_what_machines_have_is_read(tmp_path: Path) -> None:
    found = read(tmp_path, VALID + GROUPS)
    assert list(found.supply) == ["a100", "t4", "epyc"]
    a100, epyc = found.supply["a100"], found.supply["epyc"]
    assert (a100.machines, a100.resource, a100.units) == (("g1", "g2", "g3"), "nvidia.com/gpu", 8)
    assert (a100.cpu_millis, a100.memory_bytes) == (96 * 900 // 8, A100_BYTES)
    assert (epyc.resource, epyc.units, epyc.cpu_millis, epyc.memory_bytes) == ("", 36, 1000, EPYC_BYTES)
    assert (found.free("a100"), found.free("epyc")) == (16, 36)


def test_a_machine_of_one_core_has_one_unit(tmp_path: Path) -> None:
    layout = LAYOUT.replace("epyc: {mem: 320Gi, cpu: {vcore: 40}}", "epyc: {mem: 10Gi, cpu: {vcore: 1}}")
    text = "scheduler: {type: kueue}\nvirtual-clusters: [{name: a, quota: [{sku: epyc, cores: 1}]}]\n"
    found = read(tmp_path, text, layout)
    assert (found.supply["epyc"].units, found.supply["epyc"].cpu_millis) == (1, 900)


def test_an_absent_machine_gives_nothing_and_is_pinned_to_no_one(tmp_path: Path) -> None:
    found = read(tmp_path, VALID + GROUPS, ABSENT)
    assert found.supply["a100"].machines == ("g1", "g2")
    assert found.pinned == {}


def test_the_usual_priority_is_never_above_the_highest(tmp_path: Path) -> None:
    text = VALID.replace("highest: prod", "highest: oppo")
    assert read(tmp_path, text + GROUPS).clusters[0].usual == "oppo"


def test_who_may_submit(tmp_path: Path) -> None:
    research, default = read(tmp_path / "named", VALID + GROUPS).clusters
    assert research.groups == ("admins", "Vision_1")
    assert research.namespaces == ("admins", "vision-1")
    assert default.groups == ("admins", "default", "Vision_1", "nlp")

    acls = GROUPS.replace(
        "{groupname: nlp}", "{groupname: nlp, extension: {acls: {virtualClusters: [research, default]}}}"
    )
    research, default = read(tmp_path / "acls", VALID + acls).clusters
    assert research.groups == ("admins", "Vision_1", "nlp")
    assert default.groups == ("admins", "nlp")

    ours = VALID.replace("    groups: [Vision_1]\n", "")
    research, default = read(tmp_path / "none", ours).clusters
    assert (research.groups, research.namespaces, default.namespaces) == ((), ("default",), ("default",))


def test_hiveds_block_is_read_by_the_layout_for_a_migration(tmp_path: Path) -> None:
    found = migrated(tmp_path, BLOCK)
    assert found.backend == "hived"
    default, team = found.clusters
    assert default.shares == (
        Share("a100", 8, 8 * A100_BYTES, lend=8, borrow=None, machines=1),
        Share("t4", 4, 4 * (180 * GI // 4), lend=4, borrow=None, machines=1),
        Share("epyc", 36, 36 * EPYC_BYTES, lend=36, borrow=None),
    )
    assert team.shares == (Share("a100", 8, 8 * A100_BYTES, lend=8, borrow=None),)
    assert (default.pinned, team.pinned) == ((), ("g1",))
    assert (team.usual, team.highest) == ("test", "crit")


def test_hiveds_block_is_read_by_its_own_names(tmp_path: Path) -> None:
    found = read(tmp_path, BLOCK)
    assert set(found.supply) == {"A100", "T4", "CPU"}
    a100 = found.supply["A100"]
    assert (a100.machines, a100.units, a100.cpu_millis, a100.memory_bytes) == (("g1", "g2", "g3"), 8, 10_000, 100 * GI)
    assert [(share.sku, share.units) for share in found.cluster("default").shares] == [
        ("A100", 8),
        ("T4", 4),
        ("CPU", 36),
    ]
    assert found.cluster("team").pinned == ("g1",)


def test_the_block_counts_where_the_layout_has_another_machine_type(tmp_path: Path) -> None:
    """g1 to g3 are of the type that the layout calls T4, and the block calls A100."""
    found = read(
        tmp_path, BLOCK, LAYOUT.replace("machine-type: a100", "machine-type: m60").replace("  a100:", "  m60:")
    )
    assert found.skus == {"g1": "A100", "g2": "A100", "g3": "A100", "t1": "T4", "c1": "CPU"}


def test_a_machine_with_cells_of_two_skus_has_both(tmp_path: Path) -> None:
    c1 = "        cellAddress: c1\n"
    block = BLOCK.replace(c1, f"{c1}      - {{cellType: CPU-NODE, cellAddress: t1}}\n")
    found = read(tmp_path, block)
    assert found.supply["CPU"].machines == ("c1", "t1")
    assert found.skus["t1"] == "T4"


def test_what_has_no_counterpart_is_said(tmp_path: Path) -> None:
    [said] = remarks(tmp_path / "sockets", BLOCK)
    assert said.startswith("team: 2 cells of SOCKET, each 4 A100s side by side")
    whole = edited(
        "nodes -> - cellType: POOL", "sockets number -> cellNumber: 0", "team pin -", "team pins -", "g1 pin -"
    )
    [said] = remarks(tmp_path / "pool", whole)
    assert said.startswith("default: 1 cell of POOL, each 3 machines side by side")
    assert migrated(tmp_path / "pool", whole).cluster("default").shares[0].machines == 3


def test_a_part_of_a_machine_that_is_pinned_is_a_guarantee(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    text = edited("g1 pin -> cellChildren: [{pinnedCellId: ours}, {}]", "sockets number -> cellNumber: 0")
    found = migrated(tmp_path, text)
    assert found.cluster("team").shares == (Share("a100", 4, 4 * A100_BYTES, lend=4, borrow=None),)
    assert found.pinned == {}
    assert remarks(tmp_path, text) == snapshot


def test_a_pinned_rack_is_its_machines(tmp_path: Path) -> None:
    text = edited("nodes number -> cellNumber: 0", "sockets number -> cellNumber: 0", "g1 pin -").replace(
        "      - cellType: POOL\n", "      - cellType: POOL\n        pinnedCellId: ours\n"
    )
    assert read(tmp_path, text).pinned == {"g1": "team", "g2": "team", "g3": "team"}


def test_cores_of_a_block_are_a_part_of_what_a_machine_offers_here(tmp_path: Path) -> None:
    text = edited("cpu type -> CPU-NODE: {childCellType: CPU, childCellNumber: 40, isNodeLevel: true}")
    assert migrated(tmp_path, text).cluster("default").share("epyc") == Share(
        "epyc", 32, 32 * EPYC_BYTES, lend=32, borrow=None
    )


def test_machines_of_two_skus_in_one_chain_are_two_shares(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    layout = LAYOUT.replace(
        "hostname: g2, hostip: 10.0.0.3, machine-type: a100", "hostname: g2, hostip: 10.0.0.3, machine-type: b100"
    )
    layout = layout.replace(
        "  t4:\n",
        "  b100: {computing-device: {type: nvidia.com/gpu, model: B, count: 8}, mem: 900Gi, cpu: {vcore: 90}}\n  t4:\n",
    )
    text = edited("nodes number -> cellNumber: 2", "sockets number -> cellNumber: 0")
    shares = migrated(tmp_path, text, layout).cluster("default").shares
    assert [(share.sku, share.machines) for share in shares[:2]] == [("b100", 1), ("a100", 1)]
    assert remarks(tmp_path, text, layout) == snapshot


AMOUNTS = st.one_of(
    st.tuples(st.just("machines"), st.integers(1, 3)),
    st.tuples(st.just("devices"), st.integers(1, 24)),
    st.tuples(st.just("cores"), st.integers(1, 36)),
)
QUOTAS = st.lists(st.tuples(st.sampled_from(["a100", "t4", "epyc"]), AMOUNTS), max_size=2)
CLUSTERS = st.lists(
    st.tuples(QUOTAS, st.lists(st.sampled_from(["g1", "g2", "g3", "c1"]), max_size=1)), min_size=1, max_size=3
)
PROPERTY = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), database=None)


def within_supply(scheduling: Scheduling) -> None:
    """No more is guaranteed than there is, and no machine twice."""
    for sku in scheduling.supply:
        shares = [share for cluster in scheduling.clusters if (share := cluster.share(sku))]
        assert sum(share.units for share in shares) <= scheduling.free(sku)
    pinned = [name for cluster in scheduling.clusters for name in cluster.pinned]
    assert len(pinned) == len(set(pinned))


@PROPERTY
@given(clusters=CLUSTERS)
def test_a_valid_site_guarantees_no_more_than_there_is(
    clusters: list[tuple[list[tuple[str, tuple[str, int]]], list[str]]],
) -> None:
    text = "scheduler: {type: kueue}\nvirtual-clusters:\n"
    for number, (quotas, pinned) in enumerate(clusters):
        entries = ", ".join(f"{{sku: {sku}, {unit}: {count}}}" for sku, (unit, count) in quotas)
        text += f"  - {{name: vc{number}, quota: [{entries}], pinned: [{', '.join(pinned)}]}}\n"
    with tempfile.TemporaryDirectory() as folder:
        site = read_site(write_site(Path(folder), layout=LAYOUT, services=text)).site
    if site is not None:
        found = scheduling_of(site)
        assert found is not None
        within_supply(found)


@PROPERTY
@given(
    numbers=st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 36), st.integers(0, 6)),
    pin=st.sampled_from(["pinnedCellId: ours", "cellChildren: [{pinnedCellId: ours}, {}]"]),
    cores=st.integers(30, 45),
)
def test_a_valid_block_guarantees_no_more_than_there_is(
    numbers: tuple[int, int, int, int], pin: str, cores: int
) -> None:
    names = ("nodes number", "t4s number", "cores number", "sockets number")
    text = edited(
        *(f"{name} -> cellNumber: {number}" for name, number in zip(names, numbers, strict=True)),
        f"g1 pin -> {pin}",
        f"cpu type -> CPU-NODE: {{childCellType: CPU, childCellNumber: {cores}, isNodeLevel: true}}",
    )
    with tempfile.TemporaryDirectory() as folder:
        site = read_site(write_site(Path(folder), layout=LAYOUT, services=text)).site
    if site is not None:
        found = scheduling_of(site)
        assert found is not None
        within_supply(found)
