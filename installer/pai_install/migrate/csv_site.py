"""OpenPAI v1.0 to v1.4: master.csv and worker.csv (lines `hostname,address`)."""

from __future__ import annotations

import csv
from typing import NamedTuple

from pai_install.documents.document import Document, Mark
from pai_install.documents.parse import split_lines
from pai_install.documents.problem import YamlPath, short
from pai_install.migrate.account import Book, Fate
from pai_install.migrate.config import NewConfig
from pai_install.migrate.folder import OldFolder
from pai_install.migrate.model import (
    RESOURCES,
    UNKNOWN_HARDWARE,
    NewDevice,
    NewMachine,
    NewMachines,
    NewSku,
    kept_masters,
    why_no_control_plane,
)
from pai_install.site.load import LAYOUT

MASTERS, WORKERS = "master.csv", "worker.csv"


class MachineRow(NamedTuple):
    """A line of a list."""

    path: YamlPath
    name: str
    address: str


class _List(NamedTuple):
    document: Document
    rows: list[MachineRow]


def read_lists(folder: OldFolder, config: NewConfig) -> NewMachines:
    """Raises SiteInvalid for lines that name no machine, and where nothing says how to log in."""
    masters, workers = _read_list(folder, MASTERS), _read_list(folder, WORKERS)
    if not masters.document.problems and not masters.rows:
        masters.document.add((), "site.empty", "names no machine", "write a line hostname,address for each master")
    if config.file is None:
        masters.document.add(
            (), "site.no-file", "has no config or config.yml beside it", "its settings are needed: user, password"
        )
    folder.problems[:0] = [problem for listed in (masters, workers) for problem in listed.document.problems]
    folder.check()
    machines = _Machines(folder, masters.rows, workers.rows).found()
    has_masters = any(not machine.worker for machine in machines)
    for name in (MASTERS, WORKERS):
        folder.book(name).whole(Fate.KEPT, LAYOUT)
    return NewMachines("OpenPAI v1.0-v1.4 (master.csv, worker.csv)", _skus(config, has_masters=has_masters), machines)


def overrule_lists(folder: OldFolder, by: str, names: set[str]) -> None:
    """Accounts for the lists where a layout rules. names: the machines of that layout."""
    for name in (MASTERS, WORKERS):
        if not folder.has(name):
            continue
        for row in _read_list(folder, name).rows:
            book = folder.book(name)
            lost = f"line {book.waiting[row.path]}: {row.name} ({row.address}) is lost: {by} does not name this machine"
            book.drop(row.path, f"{by} rules, and names this machine, too" if row.name in names else lost)
        folder.book(name).whole(Fate.DROPPED, f"{by} is there, too, and rules")


def _read_list(folder: OldFolder, name: str) -> _List:
    document, text = folder.text(name)
    rows: list[MachineRow] = []
    document.lines = split_lines(text or "")
    for number, line in enumerate(document.lines, start=1):
        cells = _cells(line)
        if len(cells) == 2:
            rows.append(MachineRow(("machine", len(rows)), cells[0], cells[1]))
            folder.book(name).waiting[rows[-1].path] = number
        elif cells:
            message = f"{short(line)} is not `hostname,address`"
            document.add((), "site.csv", message, "write one machine per line", mark=Mark(number, 1))
    return _List(document, rows)


def _cells(line: str) -> list[str]:
    """The cells that are not empty, as Python's csv divides them: quotes are no part of them."""
    try:
        return [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True), []) if cell.strip()]
    except csv.Error:
        return [line]


class _Machines:
    """The machines of both lists without duplicate names and addresses. A machine in both is a control-plane node and
    worker.
    """

    def __init__(self, folder: OldFolder, masters: list[MachineRow], workers: list[MachineRow]) -> None:
        self.folder = folder
        self.names = list(dict.fromkeys(row.name for row in masters))
        self.stay = set(self.names[: kept_masters(len(self.names))])
        self.masters = {row[1:] for row in masters}
        self.workers = {row[1:] for row in workers}
        self.places: dict[tuple[str, str], int] = {}
        for name, rows in ((MASTERS, masters), (WORKERS, workers)):
            lines: dict[tuple[str, str], int] = {}
            for row in rows:
                self._report(folder.book(name), row, lines)

    def found(self) -> tuple[NewMachine, ...]:
        """The machines, in the order of the lists."""
        return tuple(
            NewMachine(
                *machine,
                sku="worker" if machine in self.workers else "master",
                control_plane=machine in self.masters and machine[0] in self.stay,
                worker=machine in self.workers,
            )
            for machine in self.places
        )

    def _report(self, book: Book, row: MachineRow, lines: dict[tuple[str, str], int]) -> None:
        machine = row.name, row.address
        place = f"{LAYOUT}: machine-list[{self.places.setdefault(machine, len(self.places))}]"
        if machine in lines:
            book.drop(row.path, f"line {lines[machine]} says the same")
            return
        lines[machine] = book.waiting[row.path]
        if book.file == WORKERS or row.name == self.names[0]:
            book.keep(row.path, place)
        elif row.name in self.stay:
            book.replace(row.path, f"{place}; for OpenPAI it only held etcd, now it is a control plane")
        else:
            book.replace(row.path, f"{place} without pai-master: {why_no_control_plane(len(self.names))}")


def _skus(config: NewConfig, *, has_masters: bool) -> tuple[NewSku, ...]:
    kind = config.file.document.content.get("gpu_type") if config.file is not None else None
    device = NewDevice(RESOURCES.get(str(kind).lower(), RESOURCES["nvidia"]), "unknown", "1")
    worker = NewSku("worker", "1Gi", "1", device, comment=UNKNOWN_HARDWARE)
    return (NewSku("master", "1Gi", "1", comment=UNKNOWN_HARDWARE), worker) if has_masters else (worker,)
