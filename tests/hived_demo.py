"""A site in the shape of HiveD's feature demo: machines of four devices, pairs of devices, and groups of machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from pai_install.site.load import load_site
from pai_install.site.model import Site
from tests.unit.site.sites import write_site

LAYOUT = """\
machine-sku:
  master: {mem: 60Gi, cpu: {vcore: 24}}
  M60: {computing-device: {type: nvidia.com/gpu, model: M60, count: 4}, mem: 64Gi, cpu: {vcore: 24}}
machine-list:
  - {hostname: m1, hostip: 10.0.0.1, machine-type: master, pai-master: "true"}
  - {hostname: w1, hostip: 10.0.0.2, machine-type: M60, pai-worker: "true"}
  - {hostname: w2, hostip: 10.0.0.3, machine-type: M60, pai-worker: "true"}
  - {hostname: w3, hostip: 10.0.0.4, machine-type: M60, pai-worker: "true"}
  - {hostname: w4, hostip: 10.0.0.5, machine-type: M60, pai-worker: "true"}
  - {hostname: w5, hostip: 10.0.0.6, machine-type: M60, pai-worker: "true"}
"""
BLOCK = """\
kubeApiServerAddress: http://10.0.0.1:8080
forcePodBindThreshold: 5
note-of-an-admin: kept
physicalCluster:
  skuTypes:
    K80: {gpu: 1, cpu: 4, memory: 8192Mi}
  cellTypes:
    K80-2GPU: {childCellType: K80, childCellNumber: 2}
    K80-NODE: {childCellType: K80-2GPU, childCellNumber: 2, isNodeLevel: true}
    2-K80-NODE: {childCellType: K80-NODE, childCellNumber: 2}
    3-K80-NODE: {childCellType: K80-NODE, childCellNumber: 3}
  physicalCells:
  - cellType: 3-K80-NODE
    cellChildren:
    - cellAddress: w1
    - cellAddress: w2
      pinnedCellId: VC1-K80
    - cellAddress: w3
  - cellType: 2-K80-NODE
    cellChildren: [{cellAddress: w4}, {cellAddress: w5}]
virtualClusters:
  vc1:
    virtualCells: [{cellType: 3-K80-NODE.K80-NODE, cellNumber: 1}]
    pinnedCells: [{pinnedCellId: VC1-K80}]
  vc2:
    virtualCells: [{cellType: 3-K80-NODE.K80-NODE.K80-2GPU, cellNumber: 2}]
  default:
    virtualCells: [{cellType: 2-K80-NODE, cellNumber: 1}]
"""


def services(block: str = BLOCK) -> str:
    """The section with the block."""
    return "hivedscheduler:\n  config: |\n" + "".join(f"    {line}\n" for line in block.splitlines())


def demo_site(folder: Path, block: str = BLOCK, layout: str = LAYOUT) -> Site:
    """The site of the demo."""
    return load_site(write_site(folder, layout=layout, services=services(block))).site


def content(block: str = BLOCK) -> dict[str, Any]:
    """The block as data."""
    found = yaml.safe_load(block)
    assert isinstance(found, dict)
    return found
