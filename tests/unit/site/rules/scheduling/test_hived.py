"""HiveD's block: what HiveD ends at and what it takes silently, each at its line inside the text."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.site.rules.scheduling.blocks import BLOCK, edited
from tests.unit.site.rules.scheduling.sites import ABSENT, GROUPS, LAYOUT, assert_refused, lines, marked, problems_of
from tests.unit.site.sites import CONFIG

# the rows of what HiveD does with a defect, then what is to hold beside
INVALID: dict[str, tuple[str, tuple[str, ...]]] = {
    "top-type-unknown": ("unknown-cell", ("the cpu -> - cellType: CPU-NODES !",)),
    "top-type-is-a-device": ("unknown-cell", ("the t4 -> - cellType: T4 !", "t4s !")),
    "top-type-missing": ("missing", ("the t4 -> - cellChildren: [] !", "t4s !")),
    "no-node-level": (
        "no-node-level",
        ("t4 type -> T4-NODE: {childCellType: T4, childCellNumber: 4}", "the t4 !"),
    ),
    "type-misspelt": (
        "unknown-cell",
        ("pool -> POOL: {childCellType: NODES, childCellNumber: 3} !", "team pin !"),
    ),
    "type-misspelt-where-it-is-defined": (
        "unknown-cell",
        ("node -> NODES: {childCellType: SOCKET, childCellNumber: 2, isNodeLevel: true}", "pool !", "team pin !"),
    ),
    "node-level-twice": (
        "node-level",
        ("socket -> SOCKET: {childCellType: A100, childCellNumber: 4, isNodeLevel: true} !",),
    ),
    "device-no-number": ("device-number", ("t1 + cellChildren: [{}, {}, {},{cellAddress: gpu3}] !",)),
    "device-negative": ("device-number", ("t1 + cellChildren: [{}, {}, {},{cellAddress: -1}] !",)),
    "unknown-pin": ("unknown-pin", ("team pin + - pinnedCellId: theirs !",)),
    "pin-without-name": ("missing", ("team pin + - {} !",)),
    "last-segment-unknown": ("unknown-cell", ("nodes -> - cellType: POOL.NODES !",)),
    "first-segment-not-at-the-top": ("unknown-chain", ("nodes -> - cellType: NODE !",)),
    "first-segment-unknown": ("unknown-chain", ("nodes -> - cellType: POOOL.NODE !",)),
    "middle-segment-unknown": ("unknown-cell", ("sockets -> - cellType: POOL.MACHINE.SOCKET !",)),
    "segments-turned-round": ("unknown-cell", ("sockets -> - cellType: POOL.SOCKET.NODE !",)),
    "last-segment-of-another-chain": ("unknown-cell", ("nodes -> - cellType: POOL.T4-NODE !",)),
    "type-missing": ("missing", ("nodes -> - cellNumber: 1 !", "nodes number -")),
    "sum-above-machines": ("over-quota", ("nodes number -> cellNumber: 3 !",)),
    "sum-above-devices": ("over-quota", ("sockets number -> cellNumber: 3 !",)),
    "sum-above-at-the-top": ("over-quota", ("t4s number -> cellNumber: 2 !",)),
    "second-of-two-is-told": (
        "over-quota",
        ("team cells + - {cellType: CPU-NODE.CPU, cellNumber: 1} !",),
    ),
    "chain-of-no-one": ("unused-chain", ("t4s -", "t4s number -", "the t4 !")),
    "child-number-zero": (
        "cell-number",
        ("t4 type -> T4-NODE: {childCellType: T4, childCellNumber: 0, isNodeLevel: true} !",),
    ),
    "child-number-negative": (
        "cell-number",
        ("t4 type -> T4-NODE: {childCellType: T4, childCellNumber: -4, isNodeLevel: true} !",),
    ),
    "child-number-missing": ("missing", ("t4 type -> T4-NODE: {childCellType: T4, isNodeLevel: true} !",)),
    "child-type-missing": ("missing", ("t4 type -> T4-NODE: {childCellNumber: 4, isNodeLevel: true} !",)),
    "pin-in-two": ("pinned-twice", ("clusters +   other: {pinnedCells: [{pinnedCellId: ours}]}", "team pin !")),
    "pin-twice-in-one": ("pinned-twice", ("team pin + - pinnedCellId: ours !",)),
    "pinned-devices-break-up-machines": (
        "over-quota",
        (
            "g1 pin -> cellChildren: [{pinnedCellId: ours}, {}]",
            "g2 +   cellChildren: [{}, {pinnedCellId: more}]",
            "team pin + - pinnedCellId: more",
            "nodes number -> cellNumber: 2 !",
        ),
    ),
    "cycle": (
        "cell-cycle",
        ("socket -> SOCKET: {childCellType: POOL, childCellNumber: 4} !", "team pin !"),
    ),
    "made-of-itself": ("cell-cycle", ("socket + LOOP: {childCellType: LOOP, childCellNumber: 2} !",)),
    "more-children": ("cell-children", ("pool -> POOL: {childCellType: NODE, childCellNumber: 2}", "machines !")),
    "fewer-children-and-quota": (
        "over-quota",
        ("pool -> POOL: {childCellType: NODE, childCellNumber: 4}", "nodes number -> cellNumber: 3 !"),
    ),
    "children-of-a-device": ("cell-children", ("t1 + cellChildren: [{cellChildren: [{}]}, {}, {}, {}] !",)),
    "machine-twice": ("device-twice", ("g3 -> - cellAddress: g2 !",)),
    "machine-in-two-chains": ("device-twice", ("t1 -> cellAddress: g2 !",)),
    "device-twice": ("device-twice", ("t1 + cellChildren: [{}, {}, {}, {cellAddress: 0}] !",)),
    "pin-name-twice": ("twice", ("g2 +   pinnedCellId: ours !", "sockets number -> cellNumber: 0")),
    "pin-of-no-one": ("unused-pin", ("g2 +   pinnedCellId: theirs !", "sockets number -> cellNumber: 0")),
    "pin-in-a-pin": (
        "pinned-twice",
        ("g1 pin + cellChildren: [{pinnedCellId: half}, {}] !", "team pin + - pinnedCellId: half"),
    ),
    "number-negative": ("cell-number", ("t4s number -> cellNumber: -1 !",)),
    "unknown-machine": ("unknown-machine", ("t1 -> cellAddress: t11 !",)),
    "no-worker": ("no-worker", ("t1 -> cellAddress: m1 !",)),
    "machine-without-name": ("missing", ("the t4 !", "t1 -")),
    "more-devices-than-there-are": (
        "cell-devices",
        ("t4 type -> T4-NODE: {childCellType: T4, childCellNumber: 8, isNodeLevel: true}", "t1 !"),
    ),
    "devices-of-a-machine-without": ("cell-devices", ("cpu share -> CPU: {gpu: 1, cpu: 1, memory: 7Gi}", "c1 !")),
    "absurdly-many": (
        "cell-devices",
        ("t4 type -> T4-NODE: {childCellType: T4, childCellNumber: 40000000, isNodeLevel: true}", "t1 !"),
    ),
    "type-of-a-child": ("cell-type", ("g3 +   cellType: T4-NODE !",)),
    "dot-in-a-type": ("cell-name", ("socket + A.NODE: {childCellType: T4, childCellNumber: 4} !",)),
    "slash-in-a-device": ("cell-name", ("socket + OTHER: {childCellType: T/4, childCellNumber: 4} !",)),
    "share-of-nothing": ("cell-share", ("t4 share -> T4: {gpu: 1, cpu: 0, memory: 40Gi} !",)),
    "cluster-name": ("cluster-name", ("team -> Team_1: !",)),
    "cluster-name-long": ("cluster-name", (f"team -> {'t' * 41}: !",)),
}
NO_CLUSTERS = edited("the pool !", "g1 pin -", "the t4 !", "the cpu !").partition("    virtualClusters:")[0]
POOL_ALONE = edited("the pool !", "machines -", "g1 -", "g1 pin -", "g2 -", "g3 -", "team pins -", "team pin -")


@pytest.mark.parametrize(
    ("code", "text"),
    [
        *((code, edited(*edits)) for code, edits in INVALID.values()),
        ("unused-chain", f"{NO_CLUSTERS}    virtualClusters: {{}}\n"),
        ("missing", POOL_ALONE),
    ],
    ids=[*INVALID, "no-virtual-clusters", "no-machines"],
)
def test_what_is_wrong_is_an_error_at_its_line(tmp_path: Path, code: str, text: str) -> None:
    assert_refused(tmp_path, text, code)


def test_there_are_enough_of_them() -> None:
    assert len(INVALID) >= 40


TOLD = {
    "fewer-children": (
        "cell-children",
        edited("pool -> POOL: {childCellType: NODE, childCellNumber: 4}", "machines !"),
    ),
    "fewer-devices": (
        "cell-devices",
        edited("t4 type -> T4-NODE: {childCellType: T4, childCellNumber: 2, isNodeLevel: true}", "t1 !"),
    ),
    "way-with-a-gap": ("cell-way", edited("sockets -> - cellType: POOL.SOCKET !")),
    "number-missing": ("missing", edited("t4s !", "t4s number -")),
    "not-among-sku-types": ("unknown-sku", edited("t4 share -", "t4 type !")),
    "no-default": ("no-default", edited("default -> usual:", "clusters !")),
    "default-misspelt": ("no-default", edited("default -> defualt: !")),
    "device-misspelt": (
        "unknown-sku",
        edited("t4 type -> T4-NODE: {childCellType: T44, childCellNumber: 4, isNodeLevel: true} !"),
    ),
    "unknown-in-acls": (
        "unknown-cluster",
        edited("team !")
        + GROUPS.replace("{groupname: nlp}", "{groupname: nlp, extension: {acls: {virtualClusters: [tem]}}} # <-"),
    ),
}


@pytest.mark.parametrize(("code", "text"), TOLD.values(), ids=TOLD)
def test_what_is_odd_is_a_warning_at_its_line(tmp_path: Path, code: str, text: str) -> None:
    problems = problems_of(tmp_path, text)
    assert lines(problems, "error") == set(), problems
    assert lines(problems, "warning") == marked(text), problems
    assert {one.code for one in problems} == {f"site.{code}"}


def test_the_block_is_valid(tmp_path: Path) -> None:
    assert problems_of(tmp_path, BLOCK) == ()


CORES = edited("g3 + - {cellType: CPU-NODE, cellAddress: t1}").replace("  - {cell", "- {cell")


def test_a_machine_may_have_cores_in_another_chain(tmp_path: Path) -> None:
    assert problems_of(tmp_path, CORES) == ()


def test_a_machine_may_have_other_devices_in_another_chain(tmp_path: Path) -> None:
    text = edited(
        "t4 type -> T4-NODE: {childCellType: T4, childCellNumber: 2, isNodeLevel: true}",
        "t4 type + MORE: {childCellType: A100, childCellNumber: 2, isNodeLevel: true}",
        "g3 + - {cellType: MORE, cellAddress: t1, cellChildren: [{cellAddress: 8}, {cellAddress: 9}]}",
        "team cells + - {cellType: MORE, cellNumber: 0}",
    )
    assert (
        problems_of(tmp_path, text.replace("  - {cellType: MORE, cellAddress", "- {cellType: MORE, cellAddress")) == ()
    )


def test_what_only_absent_machines_could_give_is_a_warning(tmp_path: Path) -> None:
    text = edited("g3 !", "sockets number !")
    problems = problems_of(tmp_path, text, layout=ABSENT)
    assert (lines(problems, "error"), lines(problems, "warning")) == (set(), marked(text))
    assert {one.code for one in problems} == {"site.absent-machine", "site.over-quota"}


def test_a_block_that_does_not_count_is_not_judged(tmp_path: Path) -> None:
    config = f"{CONFIG}enable_hived_scheduler: false\n"
    problems = problems_of(tmp_path, edited("t1 -> cellAddress: unknown"), config=config)
    assert [(one.code, one.severity, one.line) for one in problems] == [("site.overruled", "warning", 2)]


def test_the_place_is_right_however_the_text_is_written(tmp_path: Path) -> None:
    quoted = (
        'hivedscheduler: {config: "{physicalCluster: {cellTypes: {N: {childCellType: A100, childCellNumber: 8,\n'
        "  isNodeLevel: true}}, physicalCells: [{cellType: N, cellAddress: g9}]},\n"
        '  virtualClusters: {default: {virtualCells: [{cellType: N, cellNumber: 1}]}}}"}\n'
    )
    [problem] = problems_of(tmp_path, quoted)
    assert (problem.line, problem.column) == (2, quoted.splitlines()[1].index("cellAddress") + 1)


def test_a_thousand_machines_are_judged(tmp_path: Path) -> None:
    names = [f"n{number}" for number in range(1000)]
    machines = "".join(
        f"  - {{hostname: {name}, hostip: 10.1.{number // 250}.{number % 250 + 1}, machine-type: a100, "
        f'pai-worker: "true"}}\n'
        for number, name in enumerate(names)
    )
    cells = "".join(f"        - cellAddress: {name}\n" for name in names)
    text = edited("pool -> POOL: {childCellType: NODE, childCellNumber: 1003}")
    text = text.replace("        - cellAddress: g3\n", f"        - cellAddress: g3\n{cells}")
    assert problems_of(tmp_path, text, layout=LAYOUT + machines) == ()


def test_a_name_of_another_machine_type_of_the_layout_is_a_warning(tmp_path: Path) -> None:
    """The block's T4 is on a machine that layout.yaml calls v100, and layout.yaml has another t4."""
    layout = LAYOUT.replace("hostip: 10.0.0.5, machine-type: t4", "hostip: 10.0.0.5, machine-type: v100")
    layout = layout.replace("  t4:\n", "  T4: {mem: 200Gi, cpu: {vcore: 40}}\n  v100:\n")
    text = edited("t1 !")
    problems = [one for one in problems_of(tmp_path, text, layout=layout) if one.code == "site.machine-type-differs"]
    assert [(one.severity, one.line) for one in problems] == [("warning", min(marked(text)))]


def test_names_of_the_block_are_free(tmp_path: Path) -> None:
    assert problems_of(tmp_path, BLOCK) == ()
