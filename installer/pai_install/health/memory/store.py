"""The health store in the site's state folder: history per machine, accepted baselines, acknowledgements."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pai_install.health.memory.acknowledgement import Acknowledgement, parse_acknowledgement
from pai_install.health.memory.snapshot import Baseline, Snapshot, parse_baseline, parse_snapshot
from pai_install.system.files import write_atomic
from pai_install.system.state_file import MISSING, reading

KEPT = 60
KEPT_INCIDENTS = 1000


def silent(_line: str) -> None:
    """Drops a line for a person."""


class HealthStore:
    """A folder: history/MACHINE.jsonl with one run per line, baseline.json, acknowledged.json. Only the owner can read
    it.
    """

    def __init__(self, folder: Path, notify: Callable[[str], None] = silent) -> None:
        """Keeps the folder. notify: takes a line about damaged lines, which are ignored."""
        self._folder = folder
        self._notify = notify

    def history(self, machine: str) -> list[Snapshot]:
        """Returns the stored runs of a machine, oldest first. Raises PaiError for a file that cannot be read."""
        found, damaged = self._read(machine)
        if damaged:
            path = self._history(machine)
            self._notify(f"ignored: {damaged} damaged line(s) of {path}. The next health run of {machine} removes them")
        return found

    def _read(self, machine: str) -> tuple[list[Snapshot], int]:
        """Returns the stored runs, and the number of damaged lines."""
        path = self._history(machine)
        found = []
        try:
            with reading(path, "remove it. The history of this machine starts again"):
                lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except MISSING:
            return [], 0
        for line in lines:
            try:
                found.append(parse_snapshot(json.loads(line)))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                continue
        return found, len(lines) - len(found)

    def histories(self, machines: Iterable[str]) -> dict[str, list[Snapshot]]:
        """Returns machine -> stored runs, for machines with history."""
        return {machine: found for machine in machines if (found := self.history(machine))}

    def remember(self, snapshots: Mapping[str, Snapshot]) -> None:
        """Adds one run of each machine and keeps the last KEPT. Duplicates of a run are ignored.

        The oldest kept run inherits the incidents of deleted ones. The order ignores time stamps: a wrong clock must
        not delete the history.
        """
        for machine, snapshot in snapshots.items():
            runs = [*(old for old in self._read(machine)[0] if old.time != snapshot.time), snapshot]
            lines = [json.dumps(item.as_json(), sort_keys=True) for item in _cut(runs)]
            write_atomic(self._history(machine), "\n".join(lines) + "\n", mode=0o600)

    def baselines(self) -> dict[str, Baseline]:
        """Machine -> accepted baseline. Raises PaiError when the file is damaged."""
        path = self._folder / "baseline.json"
        try:
            with reading(path, "remove it and run pai-install health baseline --accept", code="baselines-damaged"):
                raw = json.loads(path.read_text(encoding="utf-8"))
                return {name: parse_baseline(entry) for name, entry in raw["machines"].items()}
        except MISSING:
            return {}

    def accept(self, baselines: Mapping[str, Baseline]) -> None:
        """Replaces the baselines of these machines and keeps the others."""
        self._write({**self.baselines(), **baselines})

    def forget(self, machines: Iterable[str]) -> None:
        """Drops history and baselines of machines that are no more, or are others now."""
        names = set(machines)
        for name in names:
            self._history(name).unlink(missing_ok=True)
        known = self.baselines()
        if names & known.keys():
            self._write({name: baseline for name, baseline in known.items() if name not in names})

    def _write(self, baselines: Mapping[str, Baseline]) -> None:
        machines = {name: baseline.as_json() for name, baseline in sorted(baselines.items())}
        document = {"schema_version": 1, "machines": machines}
        write_atomic(self._folder / "baseline.json", json.dumps(document, indent=1) + "\n", mode=0o600)

    def acknowledgements(self) -> list[Acknowledgement]:
        """Returns all acknowledgements, including expired ones. Raises PaiError if the file is damaged."""
        path = self._folder / "acknowledged.json"
        remedy = "remove it, and acknowledge again what is still known"
        try:
            with reading(path, remedy, code="acknowledgements-damaged"):
                raw = json.loads(path.read_text(encoding="utf-8"))
                return [parse_acknowledgement(entry) for entry in raw["acknowledged"]]
        except MISSING:
            return []

    def keep_acknowledgements(self, kept: Iterable[Acknowledgement]) -> None:
        """Replaces them all."""
        document = {"schema_version": 1, "acknowledged": [item.as_json() for item in kept]}
        write_atomic(self._folder / "acknowledged.json", json.dumps(document, indent=1) + "\n", mode=0o600)

    def _history(self, machine: str) -> Path:
        return self._folder / "history" / f"{machine.replace('/', '_')}.jsonl"


def _cut(runs: Sequence[Snapshot]) -> list[Snapshot]:
    """Returns the last KEPT runs. The first has the incidents of all earlier ones, once per card and boot."""
    forgotten, kept = runs[:-KEPT], list(runs[-KEPT:])
    incidents = {(item.xid, item.uuid, item.boot_id): item for run in (*forgotten, kept[0]) for item in run.incidents}
    if forgotten:
        kept[0] = replace(kept[0], incidents=tuple(incidents.values())[-KEPT_INCIDENTS:])
    return kept
