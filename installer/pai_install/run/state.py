"""The state folder of a site: <site>/.pai, for the owner only."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pai_install.system.files import private_folder, refuse_links

_KEPT_RUNS = 20


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of one run. Its name is the start of the run in UTC."""

    path: Path

    @property
    def name(self) -> str:
        """For example 20261121T061801Z."""
        return self.path.name

    @property
    def plan(self) -> Path:
        """The plan as JSON."""
        return self.path / "plan.json"

    @property
    def events(self) -> Path:
        """Every task that ended, one JSON line each."""
        return self.path / "events.jsonl"

    @property
    def log(self) -> Path:
        """Ansible's own output."""
        return self.path / "ansible.log"

    def report(self, suffix: str) -> Path:
        """The report in one form: json, md or html."""
        return self.path / f"report.{suffix}"

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Protects the folder from deletion during the run. The protection ends with the process."""
        import filelock  # noqa: PLC0415 - verbs that only read do not need it

        mark = self._mark
        with filelock.FileLock(mark, timeout=0, mode=0o600):
            yield
        mark.unlink(missing_ok=True)

    @property
    def finished(self) -> bool:
        """Whether the process that worked there has ended."""
        if not self._mark.exists():
            return True
        import filelock  # noqa: PLC0415

        try:
            with filelock.FileLock(self._mark, timeout=0, mode=0o600):
                return True
        except (filelock.Timeout, FileNotFoundError):
            # A run holds the mark, or has just removed it. The next run looks again.
            return False

    @property
    def _mark(self) -> Path:
        return self.path / "in-use"


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The files that a site's runs share."""

    path: Path

    @property
    def journal(self) -> Path:
        """Returns the file with started and completed steps of the runs."""
        return self.path / "journal.jsonl"

    @property
    def registry(self) -> Path:
        """Returns the file with the identities of registry cache and machines. It contains keys and passwords."""
        return self.path / "registry.json"

    @property
    def proof(self) -> Path:
        """Which machines were changed and not proven since."""
        return self.path / "proof.json"

    @property
    def virtual_clusters(self) -> Path:
        """Returns the file with the virtual clusters to restore if new ones are refused. It exists during an apply."""
        return self.path / "virtual-clusters.json"

    @property
    def work(self) -> Path:
        """The engine's folder: cached facts."""
        return self.path / "work"

    @property
    def health(self) -> Path:
        """History and accepted baselines of the machines' health."""
        return self.path / "health"

    @property
    def known_hosts(self) -> Path:
        """SSH host keys of the site's machines."""
        return self.path / "known_hosts"

    @property
    def runs(self) -> Path:
        """One folder per run."""
        return self.path / "runs"

    def new_run(self, now: datetime) -> RunFolder:
        """Makes the folder of a run and drops the oldest beyond the last 20 of its kind."""
        self.runs.mkdir(exist_ok=True, mode=0o700)
        stamp = now.astimezone(UTC).strftime("%Y%m%dT%H%M%SZ")
        for suffix in ("", *(f"-{count}" for count in range(2, 100))):
            try:
                (folder := self.runs / f"{stamp}{suffix}").mkdir(mode=0o700)
            except FileExistsError:  # two runs within a second
                continue
            break
        self._drop_old_runs()
        return RunFolder(folder)

    def _drop_old_runs(self) -> None:
        """Runs that only looked (plan, status) are counted apart: they must not push out reports.

        A run at work is kept, however many have begun since.
        """
        runs = self.all_runs()
        for kind in (True, False):
            alike = [run for run in runs if run.report("json").is_file() is kind]
            for old in filter(lambda run: run.finished, alike[:-_KEPT_RUNS]):
                shutil.rmtree(old.path, ignore_errors=True)

    def all_runs(self) -> list[RunFolder]:
        """Every kept run, the oldest first."""
        if not self.runs.is_dir():
            return []
        # A link could show, or send, the reports of another site.
        folders = [path for path in self.runs.iterdir() if path.is_dir() and not path.is_symlink()]
        return [RunFolder(path) for path in sorted(folders, key=lambda path: path.name)]

    def reports(self) -> list[Path]:
        """The reports in JSON of the runs that ended, the newest first."""
        reports = [run.report("json") for run in self.all_runs()]
        return [report for report in reversed(reports) if report.is_file()]


def state_of(site_dir: Path) -> StateFolder:
    """Returns the state folder of a site for reading. It may not exist."""
    return StateFolder(site_dir.resolve() / ".pai")


def open_state(site_dir: Path) -> StateFolder:
    """Creates <site>/.pai if it is missing, ignored by version control and private to the user."""
    path = state_of(site_dir).path
    refuse_links(*(path / name for name in ("work", "runs", "health")))
    private_folder(path)
    return StateFolder(path)
