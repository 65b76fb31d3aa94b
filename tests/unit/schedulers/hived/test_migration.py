"""From HiveD's block to the sections and back: the text means what the value says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from syrupy.assertion import SnapshotAssertion

from pai_install.schedulers.hived.migration import everything, hived_block_of, lost_in_hived, sections_of, within_hived
from pai_install.scheduling.model import Scheduling
from pai_install.scheduling.read import migrated_of
from pai_install.site.load import load_site
from tests.unit.scheduling.test_read import VALID, migrated
from tests.unit.site.rules.scheduling.blocks import BLOCK, edited
from tests.unit.site.rules.scheduling.sites import ABSENT, GROUPS, LAYOUT
from tests.unit.site.sites import write_site

OURS = VALID.replace("    groups: [Vision_1]\n", "")
# as OpenPAI's quick start makes one: a pool per SKU, the first of default, the others vc1 and so on
QUICK_START = """\
hivedscheduler:
  config: |
    physicalCluster:
      skuTypes:
        a100:
          gpu: 1
          cpu: 11
          memory: 120000Mi
        epyc:
          cpu: 1
          memory: 8000Mi
      cellTypes:
        a100-NODE:
          childCellType: a100
          childCellNumber: 8
          isNodeLevel: true
        a100-NODE-POOL:
          childCellType: a100-NODE
          childCellNumber: 3
        epyc-NODE:
          childCellType: epyc
          childCellNumber: 39
          isNodeLevel: true
        epyc-NODE-POOL:
          childCellType: epyc-NODE
          childCellNumber: 1
      physicalCells:
      - cellType: a100-NODE-POOL
        cellChildren:
        - cellAddress: g1
        - cellAddress: g2
        - cellAddress: g3
      - cellType: epyc-NODE-POOL
        cellChildren:
        - cellAddress: c1
    virtualClusters:
        default:
          virtualCells:
          - cellType: a100-NODE-POOL.a100-NODE
            cellNumber: 3
        vc1:
          virtualCells:
          - cellType: epyc-NODE-POOL.epyc-NODE
            cellNumber: 1
"""


def hived(block: str) -> str:
    """The section around the YAML of HiveD."""
    return "hivedscheduler:\n  config: |\n" + "".join(f"    {line}\n" for line in block.splitlines())


@pytest.mark.parametrize("block", [QUICK_START, BLOCK, edited("g1 pin -", "team pins -", "team pin -")])
def test_a_block_is_the_same_as_sections(tmp_path: Path, block: str) -> None:
    before = migrated(tmp_path / "block", block + GROUPS)
    after = migrated(tmp_path / "sections", sections_of(before) + GROUPS)
    assert after == before
    kueue = replace(before, backend="kueue")
    assert migrated(tmp_path / "kueue", sections_of(kueue) + GROUPS) == kueue


def test_sections_are_the_same_as_they_were(tmp_path: Path) -> None:
    before = migrated(tmp_path / "before", VALID + GROUPS)
    assert migrated(tmp_path / "after", sections_of(before) + GROUPS) == before


@pytest.mark.parametrize("text", [QUICK_START, BLOCK, OURS])
def test_a_block_says_what_hived_can_keep(tmp_path: Path, text: str) -> None:
    before = migrated(tmp_path / "before", text)
    expected = within_hived(before)
    after = migrated(tmp_path / "after", hived(hived_block_of(before)))
    assert after == expected


def test_sections_that_hived_can_keep_are_the_same_as_a_block(tmp_path: Path) -> None:
    text = (
        "scheduler: {type: hived}\n"
        "virtual-clusters:\n"
        "  - {name: default, quota: [{sku: a100, machines: 1}, {sku: epyc, cores: 7}]}\n"
        "  - {name: team, quota: [{sku: a100, devices: 6}], pinned: [g2, t1]}\n"
    )
    before = migrated(tmp_path / "before", text)
    assert lost_in_hived(before) == ()
    assert migrated(tmp_path / "after", hived(hived_block_of(before))) == before


def test_what_hived_cannot_say_is_said(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    assert lost_in_hived(migrated(tmp_path, OURS)) == snapshot


def test_names_of_cell_types_hold_no_count(tmp_path: Path) -> None:
    head, g3, tail = LAYOUT.partition("hostname: g3")
    without = head + g3 + tail.replace("worker", "storage", 1)
    text = QUICK_START.replace("        - cellAddress: g3\n", "").replace("Number: 3", "Number: 2")
    few = yaml.safe_load(hived_block_of(migrated(tmp_path / "few", text, without)))
    many = yaml.safe_load(hived_block_of(migrated(tmp_path / "many", QUICK_START)))
    assert list(few["physicalCluster"]["cellTypes"]) == list(many["physicalCluster"]["cellTypes"])
    # also those that OpenPAI gave: no job of a site that moves here changes its cell type
    written = yaml.safe_load(yaml.safe_load(QUICK_START)["hivedscheduler"]["config"])
    assert set(written["physicalCluster"]["cellTypes"]) < set(many["physicalCluster"]["cellTypes"])


def test_every_chain_is_someones(tmp_path: Path) -> None:
    made = yaml.safe_load(hived_block_of(migrated(tmp_path, QUICK_START)))
    cells = made["virtualClusters"]["default"]["virtualCells"]
    assert {"cellType": "t4-NODE-POOL.t4-NODE", "cellNumber": 0} in cells
    first = yaml.safe_load(hived_block_of(migrated(tmp_path / "first", QUICK_START.replace(" default:", " ours:"))))
    assert first["virtualClusters"]["ours"]["virtualCells"] == cells


def test_numbers_of_the_block_are_numbers(tmp_path: Path) -> None:
    made = yaml.safe_load(hived_block_of(migrated(tmp_path, QUICK_START)))
    node = made["physicalCluster"]["cellTypes"]["a100-NODE"]
    assert node == {"childCellType": "a100", "childCellNumber": 8, "isNodeLevel": True}
    assert made["physicalCluster"]["skuTypes"]["a100"] == {"gpu": 1, "cpu": 10, "memory": "115200Mi"}


def test_an_sku_may_have_what_divides_types(tmp_path: Path) -> None:
    layout = LAYOUT.replace("a100", "a.100")
    before = migrated(tmp_path / "before", OURS.replace("a100", "a.100"), layout)
    assert migrated(tmp_path / "after", hived(hived_block_of(before)), layout) == within_hived(before)


def test_absent_machines_migrate_as_well(tmp_path: Path) -> None:
    site = load_site(
        write_site(tmp_path, layout=ABSENT, services=BLOCK.replace("g1", "x").replace("g3", "g1").replace("x", "g3"))
    ).site
    found = migrated_of(everything(site))
    assert isinstance(found, Scheduling)
    assert found.pinned == {"g3": "team"}
    assert found.supply["a100"].machines == ("g1", "g2", "g3")


def test_groups_are_named_where_not_all_may_submit(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    found = migrated(tmp_path, VALID + GROUPS)
    text = sections_of(found, everyone=("admins", "default", "Vision_1", "nlp"))
    assert text.count("groups:") == 1
    assert text == snapshot
