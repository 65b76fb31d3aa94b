"""A block of HiveD's for the machines of `sites`, with every kind of cell, and changes of its lines by their names."""

from __future__ import annotations

import re

from tests.unit.site.rules.scheduling.sites import MARK

# behind '#:' the name of a line
_LINES = """\
hivedscheduler:
  config: |
    physicalCluster:
      skuTypes:
        A100: {gpu: 1, cpu: 10, memory: 100Gi}
        T4: {gpu: 1, cpu: 8, memory: 40Gi} #:t4 share
        CPU: {cpu: 1, memory: 7Gi} #:cpu share
      cellTypes:
        SOCKET: {childCellType: A100, childCellNumber: 4} #:socket
        NODE: {childCellType: SOCKET, childCellNumber: 2, isNodeLevel: true} #:node
        POOL: {childCellType: NODE, childCellNumber: 3} #:pool
        T4-NODE: {childCellType: T4, childCellNumber: 4, isNodeLevel: true} #:t4 type
        CPU-NODE: {childCellType: CPU, childCellNumber: 36, isNodeLevel: true} #:cpu type
      physicalCells:
      - cellType: POOL #:the pool
        cellChildren: #:machines
        - cellAddress: g1 #:g1
          pinnedCellId: ours #:g1 pin
        - cellAddress: g2 #:g2
        - cellAddress: g3 #:g3
      - cellType: T4-NODE #:the t4
        cellAddress: t1 #:t1
      - cellType: CPU-NODE #:the cpu
        cellAddress: c1 #:c1
    virtualClusters: #:clusters
      default: #:default
        virtualCells: #:default cells
        - cellType: POOL.NODE #:nodes
          cellNumber: 1 #:nodes number
        - cellType: T4-NODE #:t4s
          cellNumber: 1 #:t4s number
        - cellType: CPU-NODE.CPU #:cores
          cellNumber: 36 #:cores number
      team: #:team
        virtualCells: #:team cells
        - cellType: POOL.NODE.SOCKET #:sockets
          cellNumber: 2 #:sockets number
        pinnedCells: #:team pins
        - pinnedCellId: ours #:team pin
"""
_NAME = re.compile(r" #:(.*)$")
BLOCK = re.sub(r" #:.*", "", _LINES)


def edited(*edits: str) -> str:
    """The block with lines changed, each by its name: "NAME -> TEXT" is another text for it, "NAME + TEXT" a line
    below it as deep as it is, "NAME -" is without it, "NAME !" leaves it. A '!' at the end marks the line.
    """
    left = list(edits)
    made: list[str] = []
    for line in _LINES.splitlines():
        name = found[1] if (found := _NAME.search(line)) else "no name"
        lines = [_NAME.sub("", line)]
        for edit in [one for one in left if re.match(rf"{re.escape(name)} (->|\+|-$|!$)", one)]:
            left.remove(edit)
            lines = _edited(lines, edit.removeprefix(name).strip())
        made += lines
    assert not left, left
    return "".join(f"{line}\n" for line in made)


def _edited(lines: list[str], edit: str) -> list[str]:
    first = lines[0]
    indent = first[: len(first) - len(first.lstrip())]
    mark = f" {MARK}" if edit.endswith("!") else ""
    word = edit.removesuffix("!").rstrip()
    if word.startswith("->"):
        return [f"{indent}{word.removeprefix('->').strip()}{mark}", *lines[1:]]
    if word.startswith("+"):
        return [*lines, f"{indent}{word.removeprefix('+').removeprefix(' ')}{mark}"]
    return [] if word == "-" else [f"{first}{mark}", *lines[1:]]
