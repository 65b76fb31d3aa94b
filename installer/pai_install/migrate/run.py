"""Recognises an old site, reads it and writes the current one."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from pai_install.errors import ExitCode, PaiError
from pai_install.migrate.account import AccountLine, Fate, summary
from pai_install.migrate.config import CONFIG_NAMES, NewConfig, read_config
from pai_install.migrate.console import console_text
from pai_install.migrate.csv_site import MASTERS, WORKERS, overrule_lists, read_lists
from pai_install.migrate.emit import layout_text
from pai_install.migrate.folder import OldFile, OldFolder
from pai_install.migrate.kubernetes import read_kubernetes
from pai_install.migrate.layout_old import is_old, read_old_layout
from pai_install.migrate.model import NewMachines, Note
from pai_install.migrate.quick_start import QUICK_START_NAMES, is_quick_start, read_quick_start
from pai_install.site.load import CONFIG, LAYOUT, SERVICES, SiteReading, read_site
from pai_install.site.services import read_services
from pai_install.site_edit.new import write_new_site

ACCOUNT = "migrated.txt"
# what says which machines there are: the first that is there rules
LAYOUT_NAMES = (LAYOUT, "layout.yml", "cluster-configuration.yaml", "cluster-configuration.yml")
SERVICES_NAMES = (SERVICES, "services-configuration.yml")
# folders below OpenPAI's and the admin's in which a site stands
_BELOW = ("config", "cluster-cfg", "cluster-configuration", "quick-start-config", "example")


@dataclass(frozen=True, slots=True)
class Migration:
    """The result. files: written files. account: outcome of everything in the old folder.

    notes: dropped and changed entries, grouped by kind. reading: validation of the result.
    """

    origin: str
    files: tuple[Path, ...]
    account: tuple[AccountLine, ...]
    notes: tuple[Note, ...]
    reading: SiteReading

    @property
    def counts(self) -> dict[Fate, int]:
        """Returns outcome -> number of keys and entries of the old files, without the files themselves."""
        found = Counter(entry.outcome for entry in self.account if entry.path)
        return {outcome: found[outcome] for outcome in Fate}


def migrate(source: Path, target: Path) -> Migration:
    """Converts the old site in `source` to a current one in `target`.

    Raises PaiError if there is no old site or a file in `target` exists, and SiteInvalid if the old files are
    unreadable. An invalid result is written too, and `reading` lists its problems.
    """
    folder = OldFolder(source)
    # First, as the readers of machines add settings to it.
    config = read_config(folder) if any(folder.has(name) for name in CONFIG_NAMES) else NewConfig()
    machines = _machines(folder, config)
    read_kubernetes(folder, config)
    folder.check()
    services = _services(folder)
    # After all readers: what none of them took is dropped by name here.
    account = folder.account()
    notes = (*machines.notes, *(Note(what, why) for what, why in summary(account)))
    files = {LAYOUT: layout_text(machines, [(note.what, note.why) for note in notes]), CONFIG: config.text()}
    if services is not None:
        files[SERVICES] = services
    files[ACCOUNT] = "\n".join(map(str, account)) + "\n"
    paths = write_new_site(target, files)
    return Migration(machines.origin, paths, tuple(account), notes, read_site(target))


def _machines(folder: OldFolder, config: NewConfig) -> NewMachines:
    """Returns the machines of the newest file, and accounts for the replaced files."""
    layouts = [name for name in LAYOUT_NAMES if folder.has(name)]
    quick = [name for name in QUICK_START_NAMES if folder.has(name)]
    lists = [name for name in (MASTERS, WORKERS) if folder.has(name)]
    if layouts:
        found = _layout(folder, layouts[0], config)
        overrule_lists(folder, layouts[0], _names(folder, found))
        older = [*layouts[1:], *quick]
    elif lists:
        found, older = read_lists(folder, config), quick
    elif quick:
        found, older = _quick_start(folder, quick[0], config), quick[1:]
    else:
        raise _nothing_old(folder)
    for name in older:
        folder.overrule(name, (layouts or lists or quick)[0])
    return found


def _layout(folder: OldFolder, name: str, config: NewConfig) -> NewMachines:
    file = folder.read(name)
    folder.check()
    if is_quick_start(file.document):
        return read_quick_start(file, config)
    if is_old(file.document) or name not in LAYOUT_NAMES[:2]:
        return read_old_layout(file, config)
    return _current(folder, file)


def _quick_start(folder: OldFolder, name: str, config: NewConfig) -> NewMachines:
    file = folder.read(name)
    folder.check()
    return read_quick_start(file, config)


def _current(folder: OldFolder, file: OldFile) -> NewMachines:
    """A layout of the current form, kept word for word because older files stand beside it."""
    older = (*LAYOUT_NAMES[1:], *CONFIG_NAMES[1:], *SERVICES_NAMES[1:], *QUICK_START_NAMES, MASTERS, WORKERS)
    if not any((folder.path / name).is_file() for name in older):
        raise PaiError(
            f"cannot migrate {folder.path / file.name}: it has the current form",
            code="migrate-already-current",
            remedy=f"run pai-install validate --site {folder.path}",
            exit_code=ExitCode.USAGE,
        )
    file.book.keep((), LAYOUT)
    file.book.whole(Fate.KEPT, f"{LAYOUT}, as it was: it has the current form")
    return NewMachines(f"files of several versions of OpenPAI ({file.name} is current)", layout=_text_of(file))


def _text_of(file: OldFile) -> str:
    return "\n".join(file.document.lines)


def _names(folder: OldFolder, machines: NewMachines) -> set[str]:
    """The names of the machines that a layout has."""
    names = {machine.hostname for machine in machines.machines}
    for book in folder.books.values():
        entries = book.document.content.get("machine-list")
        if isinstance(entries, list):
            names |= {str(entry.get("hostname")) for entry in entries if isinstance(entry, dict)}
    return names


def _nothing_old(folder: OldFolder) -> PaiError:
    below = [name for name in _BELOW if any((folder.path / name / old).is_file() for old in (*LAYOUT_NAMES, MASTERS))]
    return PaiError(
        f"cannot migrate {folder.path}: it contains no old site",
        code="migrate-no-old-site",
        details=f"looked for {MASTERS}, {WORKERS}, {', '.join((*LAYOUT_NAMES, QUICK_START_NAMES[0]))}",
        remedy=f"use {folder.path / below[0]}" if below else "name the folder with the old files",
        exit_code=ExitCode.USAGE,
    )


def _services(folder: OldFolder) -> str | None:
    names = [name for name in SERVICES_NAMES if folder.has(name)]
    if not names:
        return None
    for name in names[1:]:
        folder.overrule(name, names[0])
    document = folder.document(names[0], last_wins=False)
    # Read twice: once with our rules, and once as OpenPAI read it, for the account.
    services = folder.document(names[0])
    found = read_services(document)
    book = folder.book(names[0])
    book.open(services)
    wrong = next((problem for problem in document.problems if problem.is_error), None)
    if wrong is not None:
        book.drop((), f"the file is not taken over: line {wrong.line}: {wrong.message}")
        book.whole(Fate.DROPPED, f"line {wrong.line}: {wrong.message}")
        return None
    book.keep((), f"{SERVICES}, as it was")
    book.whole(Fate.KEPT, f"{SERVICES}, as it was")
    return _text_of(OldFile(document, book)).rstrip("\n") + (console_text(found) or "\n")
